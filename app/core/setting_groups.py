"""What runtime settings belong together: in the documentation, and on the pages for them."""

from enum import Enum

ACCOUNTS = "Signing in, accounts and sessions"
ADDRESSES = "Addresses of the site"
MAILS = "Mail"
FRONTENDS = "What the frontend shows"
STORED = "Avatars, storage and teams"
UPKEEP = "Audit log and clean-up"


class Group(Enum):
    """Settings with the same section in docs/settings.md and the same category on the wire.

    The product's own client has a page for each category. Switches of a group that `takes_words`
    may also be set by words such as yes and off.
    """

    SIGN_IN = (ACCOUNTS, "auth", True)
    REGISTRATION = (ACCOUNTS, "user.registration_and_login", True)
    REQUEST_SOURCES = (ACCOUNTS, "network", True)
    SITE = (ADDRESSES, "site")
    CORS = (ADDRESSES, "network")
    MAIL = (MAILS, "mail.config")
    MAIL_TEMPLATES = (MAILS, "mail.template")
    OUTBOX = (MAILS, "runtime.mail")
    PAGES = ("Built-in pages", "site")
    FRONTEND = (FRONTENDS, "site")
    AVATARS = (STORED, "user.avatar")
    STORAGE = (STORED, "storage")
    AUDIT = (UPKEEP, "audit")
    MAINTENANCE = (UPKEEP, "runtime.maintenance")

    def __init__(self, section: str, category: str, takes_words: bool = False) -> None:
        self.section = section
        self.category = category
        self.takes_words = takes_words
