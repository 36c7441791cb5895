"""What the owner of an account is told by mail about its passkeys."""

from sqlalchemy.orm import Session

from app.core.runtime import Runtime
from app.mail import service as mail
from app.mail.templates import Template
from app.users.models import Account


def tell_added(rt: Runtime, session: Session, account: Account, name: str) -> None:
    """Say, once the running transaction is committed, that there is a new passkey."""
    _tell(rt, session, account, f"The passkey “{name}” was added. It can be used to sign in.")


def tell_removed(rt: Runtime, session: Session, account: Account, name: str) -> None:
    """Say, once the running transaction is committed, that a passkey is gone."""
    event = f"The passkey “{name}” was removed. It can no longer be used to sign in."
    _tell(rt, session, account, event)


def _tell(rt: Runtime, session: Session, account: Account, event: str) -> None:
    told = {"username": account.username, "event": event}
    mail.queue(rt, session, Template.SECURITY_NOTICE, account.email, **told)
