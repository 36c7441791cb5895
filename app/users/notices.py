"""Mails that tell the owner of an account what happened to it."""

import logging

from sqlalchemy.orm import Session

from app.core.runtime import Runtime
from app.mail import service as mail
from app.users.models import Account

log = logging.getLogger(__name__)


def tell(rt: Runtime, session: Session, account: Account, event: str) -> None:
    """Tell the account's owner by mail, once the running transaction is committed.

    `event` is the sentence in the mail. An owner whom an hour has told often enough is not told
    again.
    """
    names = {"username": account.username, "event": event}
    if not mail.queue_notice(rt, session, account.email, **names):
        log.warning("user %s has had many notices by mail and gets no further one", account.id)
