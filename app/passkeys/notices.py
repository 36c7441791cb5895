"""What the owner of an account is told by mail about its passkeys."""

from enum import Enum

from sqlalchemy.orm import Session

from app.core.runtime import Runtime
from app.mail import service as mail
from app.mail.templates import Template
from app.users.models import Account


class Notice(Enum):
    """An event; its value is the sentence in the mail.

    Names of passkeys are left out: whoever took over a session must not choose words that a mail
    of this service says.
    """

    ADDED = "A passkey was added. It can be used to sign in without a password."
    REMOVED = "A passkey was removed. It cannot be used to sign in any more."


def tell(rt: Runtime, session: Session, account: Account, what: Notice) -> None:
    """Tell the account's owner by mail, once the running transaction is committed."""
    told = {"username": account.username, "event": what.value}
    mail.queue(rt, session, Template.SECURITY_NOTICE, account.email, **told)
