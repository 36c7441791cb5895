"""The runtime settings, and the registry of all keys, with those of `audit` and `web`."""

from functools import partial
from typing import Any
from urllib.parse import urlsplit

from app.audit import keys as audit
from app.core import email_address, mail_text, setting_kinds
from app.core.setting_kinds import Key, boolean, choice, number, text
from app.settings import page_keys
from app.web import cors, guards, site

DAY = 86_400
YEAR = 365 * DAY
PRODUCT_TITLE = "Gatehouse"

_ADDRESSES = ("example.com", "ada@example.net")


def _seconds(name: str, meaning: str, default: int, *, least: int = 1, most: int = DAY) -> Key[int]:
    return number(name, meaning, default, unit="seconds", least=least, most=most)


def _email_policy_entry(entry: str) -> str:
    """Return an exact address or an ASCII domain, in lower case; `@domain` means `domain`."""
    # The lower case of the Kelvin sign is the letter k, which would hide that it is not ASCII.
    lowered = entry.lower() if entry.isascii() else entry
    domain = lowered.removeprefix("@")
    if not (email_address.is_domain(domain) or _is_address(lowered)):
        raise ValueError(
            f"{entry!r} must be an e-mail address or a domain, internationalised ones in punycode"
        )
    return domain


def _http_url(text: str) -> str:
    """Return an absolute http(s) URL; empty means the default."""
    parts = urlsplit(text)
    if text and parts.scheme not in {"http", "https"}:
        raise ValueError("must be an absolute http or https address")
    if text and not site.is_authority(parts.netloc.lower()):
        raise ValueError("must name a host, an internationalised one in punycode")
    return text


def _link(text: str) -> str:
    """Return an http(s) URL or an absolute path, so that no `javascript:` URL gets into a page."""
    if text.startswith("/") and not text.startswith(("//", "/\\")):
        return text
    if text and "://" not in text:
        raise ValueError("must be an http or https address, or a path that begins with /")
    return _http_url(text)


def _mail_address(text: str) -> str:
    """Return an address that mail can be sent from; empty means none."""
    try:
        return email_address.normalized(text) if text else text
    except ValueError as error:
        raise ValueError(f"must be an e-mail address: {error}") from None


def _helo_name(text: str) -> str:
    """Return what a client of an SMTP server may call itself; empty means the default."""
    return email_address.helo_name(text) if text else text


def _is_address(entry: str) -> bool:
    """Return whether an entry is a normalised address, as stored for accounts, so it can match."""
    try:
        return email_address.normalized(entry) == entry
    except ValueError:
        return False


class PlaceholderMissing(ValueError):
    """The HTML of a mail lacks what the mail is sent for."""


def missing_placeholder(name: str, html: str) -> str | None:
    """Return what the HTML of a mail lacks, as it is to be typed; None if nothing, or if blank."""
    needed = MAIL_NEEDS.get(name)
    if needed is None or not html.strip() or mail_text.shows(html, needed):
        return None
    return f"{{{{{needed}}}}}"


def _complete_template(name: str, html: str) -> str:
    """Return the HTML of a mail; blank means built-in.

    Raises: PlaceholderMissing.
    """
    if (missing := missing_placeholder(name, html)) is not None:
        raise PlaceholderMissing(
            f"must contain {missing} where it is read, not in a comment: the mail is sent for that"
        )
    return html


PASSWORD_LOGIN_ENABLED = boolean(
    "auth_password_login_enabled", "Whether accounts sign in with a password", default=True
)
PASSWORD_BLOCKLIST_ENABLED = boolean(
    "auth_password_blocklist_enabled",
    "Whether new passwords that are common, or the account's own name, are refused",
    default=False,
)
PASSWORD_BREACH_CHECK = choice(
    "auth_password_breach_check",
    "Whether new passwords that are in the list of GATEHOUSE_BREACHED_PASSWORDS are refused; auto: "
    "while there is a list",
    "auto",
    ("auto", "off"),
)
ACCOUNT_EXPORT_ENABLED = boolean(
    "auth_account_export_enabled",
    "Whether people can download what is stored about them",
    default=True,
)
ACCOUNT_DELETION_ENABLED = boolean(
    "auth_account_deletion_enabled", "Whether people can delete their own account", default=True
)
PASSKEY_LOGIN_ENABLED = boolean(
    "auth_passkey_login_enabled", "Whether accounts sign in with a passkey", default=True
)
ALLOW_USER_REGISTRATION = boolean(
    "auth_allow_user_registration",
    "Whether anybody may register; invitations work either way",
    default=True,
)
REGISTER_ACTIVATION = setting_kinds.choice(
    "auth_register_activation_enabled",
    "Whether a new account must first be activated with a mailed link; auto: if mail is set up",
    "auto",
    ("auto", "true", "false"),
    is_switch=True,
)
EMAIL_CODE_LOGIN_ENABLED = boolean(
    "auth_email_code_login_enabled",
    "Whether a mailed code is a second factor at login; needs mail_smtp_host and mail_from_address",
    default=False,
)
EMAIL_CODE_TOTP_FALLBACK = boolean(
    "auth_email_code_login_allow_totp_fallback",
    "Whether accounts with an authenticator app may use a mailed code as well",
    default=False,
)
EMAIL_CODE_TTL_SECONDS = _seconds(
    "auth_email_code_login_ttl_secs", "How long a mailed login code is valid", 600
)
EMAIL_CODE_COOLDOWN_SECONDS = _seconds(
    "auth_email_code_login_resend_cooldown_secs",
    "How long to wait before another login code is mailed",
    60,
)
MFA_FLOW_TTL_SECONDS = _seconds(
    "auth_mfa_flow_ttl_secs",
    "How much time there is to enter a second factor, or to set up an authenticator app",
    300,
)
PASSKEY_FLOW_TTL_SECONDS = _seconds(
    "auth_passkey_flow_ttl_secs",
    "How much time there is to answer the browser's request for a passkey",
    300,
)
EXTERNAL_FLOW_TTL_SECONDS = _seconds(
    "auth_external_flow_ttl_secs", "How much time there is to sign in at an external provider", 300
)
ACCESS_TTL_SECONDS = _seconds(
    "auth_access_token_ttl_secs", "How long an access token is valid before it is refreshed", 900
)
REFRESH_TTL_SECONDS = _seconds(
    "auth_refresh_token_ttl_secs", "How long a session lasts without a refresh", 7 * DAY, most=YEAR
)
REUSE_GRACE_SECONDS = _seconds(
    "auth_refresh_reuse_grace_secs",
    "How long a used refresh token raises no alarm when the same browser sends it",
    0,
    least=0,
    most=60,
)
REGISTER_ACTIVATION_TTL_SECONDS = _seconds(
    "auth_register_activation_ttl_secs",
    "How long the mailed link for a registration is valid",
    DAY,
    most=YEAR,
)
UNACTIVATED_KEEP_DAYS = number(
    "auth_unactivated_keep_days",
    "How many days an account may wait for activation; then it is deleted, and name and address "
    "are free again",
    7,
    unit="days",
    least=1,
    most=3650,
)
CONTACT_CHANGE_TTL_SECONDS = _seconds(
    "auth_contact_change_ttl_secs",
    "How long the mailed link for a change of address is valid",
    DAY,
    most=YEAR,
)
PASSWORD_RESET_TTL_SECONDS = _seconds(
    "auth_password_reset_ttl_secs",
    "How long the mailed link for a password reset is valid",
    3600,
    most=YEAR,
)
INVITATION_TTL_SECONDS = _seconds(
    "auth_user_invitation_ttl_secs", "How long an invitation is valid", 3 * DAY, most=YEAR
)
CONTACT_COOLDOWN_SECONDS = _seconds(
    "auth_contact_verification_resend_cooldown_secs",
    "How long to wait before the link for a registration or change of address is mailed again",
    60,
)
RESET_COOLDOWN_SECONDS = _seconds(
    "auth_password_reset_request_cooldown_secs",
    "How long to wait before another password reset is mailed",
    60,
)
RESERVED_USERNAMES = setting_kinds.text_list(
    "auth_reserved_usernames",
    "Usernames, whatever their case, that only operators give; nor can names of digits be chosen",
    str.lower,
    example=("admin", "support"),
    default=(
        *("admin", "administrator", "root", "system", "support", "security", "postmaster"),
        *("hostmaster", "webmaster", "abuse", "noreply", "no-reply", "me", "null", "undefined"),
    ),
)
EMAIL_ALLOWLIST = setting_kinds.text_list(
    "auth_local_email_allowlist",
    "The only addresses and domains allowed to register here and as new addresses; empty allows "
    "all; providers have allowed_domains of their own",
    _email_policy_entry,
    example=_ADDRESSES,
    item_kind="email_or_domain",
)
EMAIL_BLOCKLIST = setting_kinds.text_list(
    "auth_local_email_blocklist",
    "Addresses and domains that cannot register here or be changed to, even if allowed above; "
    "providers have allowed_domains of their own",
    _email_policy_entry,
    example=_ADDRESSES,
    item_kind="email_or_domain",
)

DEFAULT_STORAGE_QUOTA = number(
    "default_storage_quota",
    "The storage quota of a new account or team; 0 means no limit",
    0,
    unit="bytes",
    least=0,
)
GRAVATAR_BASE_URL = text(
    "gravatar_base_url",
    "Where avatars with the source gravatar come from; empty means the default",
    "https://www.gravatar.com/avatar",
    check=_http_url,
)
AVATAR_MAX_UPLOAD_BYTES = number(
    "avatar_max_upload_size_bytes",
    "The largest picture that may be uploaded as an avatar",
    10 * 1024 * 1024,
    unit="bytes",
    most=16 * 1024 * 1024,
)

BRANDING_TITLE = text(
    "branding_title",
    "What the site is called: in mails, authenticator apps, passkeys, pages and the frontend",
    PRODUCT_TITLE,
    max_length=120,
)
BRANDING_DESCRIPTION = text(
    "branding_description", "What the frontend says about the site", max_length=300
)
BRANDING_FAVICON_URL = text(
    "branding_favicon_url",
    "Address of the icon in browser tabs, or a path of this site",
    "/favicon.svg",
    check=_link,
)
BRANDING_WORDMARK_DARK_URL = text(
    "branding_wordmark_dark_url",
    "Address of a logo for dark pages, or a path of this site",
    check=_link,
)
BRANDING_WORDMARK_LIGHT_URL = text(
    "branding_wordmark_light_url",
    "Address of a logo for light pages, or a path of this site",
    check=_link,
)

MAIL_SMTP_HOST = text(
    "mail_smtp_host", "Host of the SMTP server; if empty, mails become files", max_length=255
)
MAIL_SMTP_PORT = number("mail_smtp_port", "Port of the SMTP server", 587, most=65535)
MAIL_SMTP_USERNAME = text(
    "mail_smtp_username",
    "User name for the SMTP server; empty means no login",
    max_length=255,
)
MAIL_SMTP_PASSWORD = text(
    "mail_smtp_password", "Password for the SMTP server", max_length=1024, is_sensitive=True
)
MAIL_FROM_ADDRESS = text(
    "mail_from_address",
    "The sender's address; without it no mail leaves by SMTP",
    max_length=255,
    check=_mail_address,
)
MAIL_FROM_NAME = text("mail_from_name", "The sender's name", PRODUCT_TITLE, max_length=255)
MAIL_HELO_NAME = text(
    "mail_helo_name",
    "What the service calls itself at the SMTP server (EHLO), a host name or an IP address; empty "
    "means the host of public_site_url, or else the sender's domain",
    max_length=255,
    check=_helo_name,
)
MAIL_SECURITY = boolean(
    "mail_security",
    "Whether SMTP is encrypted (STARTTLS, or TLS on port 465) and the server's certificate checked",
    default=True,
)
MAIL_DISPATCH_INTERVAL_SECONDS = _seconds(
    "mail_outbox_dispatch_interval_secs",
    "How often the outbox is checked for mails to send",
    5,
    most=3600,
)
MAIL_PURPOSES = {
    "register_activation": "that asks to activate an account",
    "contact_change_confirmation": "that asks to confirm a new address",
    "contact_change_notice": "that tells the old address about the new one",
    "password_reset": "with the link for a password reset",
    "password_reset_notice": "about a changed password",
    "external_auth_email_verification": "that asks to confirm the address of an external sign-in",
    "login_email_code": "with a login code",
    "confirmation_code": "with a code to confirm a dangerous change",
    "security_notice": "about a change to the ways to sign in",
    "user_invitation": "with an invitation",
}
# What each is sent for, and useless without.
MAIL_NEEDS = {
    "register_activation": "verification_url",
    "contact_change_confirmation": "verification_url",
    "password_reset": "reset_url",
    "external_auth_email_verification": "verification_url",
    "login_email_code": "code",
    "confirmation_code": "code",
    "user_invitation": "invitation_url",
}
MAIL_TEMPLATE_SUBJECTS = {
    name: text(
        f"mail_template_{name}_subject",
        f"Subject of the mail {which}; empty means built-in",
        max_length=255,
    )
    for name, which in MAIL_PURPOSES.items()
}
MAIL_TEMPLATE_HTML = {
    name: text(
        f"mail_template_{name}_html",
        f"HTML of the mail {which}; empty means built-in"
        + (f", else it contains {{{{{MAIL_NEEDS[name]}}}}}" if name in MAIL_NEEDS else ""),
        max_length=65_536,
        multiline=True,
        check=partial(_complete_template, name),
    )
    for name, which in MAIL_PURPOSES.items()
}

CLEANUP_INTERVAL_SECONDS = _seconds(
    "maintenance_cleanup_interval_secs",
    "How often expired rows and leftover files are deleted",
    3600,
    most=30 * DAY,
)
TEAM_MEMBER_LIST_MAX_LIMIT = number(
    "team_member_list_max_limit",
    "The longest page of a team's members; used by the file service only",
    100,
    unit="members",
    most=10_000,
)
TEAM_ARCHIVE_RETENTION_DAYS = number(
    "team_archive_retention_days",
    "How long an archived team is kept before it is deleted",
    7,
    unit="days",
    least=0,
    most=36_500,
)
ARCHIVE_DOWNLOAD_USER = boolean(
    "archive_download_user_enabled",
    "Whether the frontend lets users download folders as archives",
    default=True,
)
ARCHIVE_DOWNLOAD_SHARE = boolean(
    "archive_download_share_enabled",
    "Whether the frontend lets shared folders be downloaded as archives",
    default=True,
)
IMAGE_PREVIEW_PREFERENCE = setting_kinds.choice(
    "frontend_image_preview_preference",
    "What the frontend shows first: the picture itself or its preview",
    "original_first",
    ("original_first", "preview_first"),
)


def _declared(namespace: dict[str, Any]) -> list[Key[Any]]:
    return [value for value in namespace.values() if isinstance(value, Key)]


ALL: dict[str, Key[Any]] = {
    key.name: key
    for key in (
        *_declared(globals()),
        *MAIL_TEMPLATE_SUBJECTS.values(),
        *MAIL_TEMPLATE_HTML.values(),
        *_declared(vars(page_keys)),
        *_declared(vars(audit)),
        *_declared(vars(cors)),
        *_declared(vars(guards)),
        *_declared(vars(site)),
    )
}
