"""Mails that tell the owner of an account what happened to it."""

from sqlalchemy.orm import Session

from app.core.runtime import Runtime
from app.mail import service as mail
from app.mail.templates import Template
from app.users.models import Account


def tell(rt: Runtime, session: Session, account: Account, event: str) -> None:
    """Tell the account's owner by mail, once the running transaction is committed.

    `event` is the sentence in the mail.
    """
    mail.queue(
        rt,
        session,
        Template.SECURITY_NOTICE,
        account.email,
        username=account.username,
        event=event,
    )
