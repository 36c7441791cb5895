"""Mails that notify the owner of an account of what happened to it."""

import logging

from sqlalchemy.orm import Session

from app.core.runtime import Runtime
from app.mail import service as mail
from app.users.models import Account

log = logging.getLogger(__name__)


def notify_owner(rt: Runtime, session: Session, account: Account, event: str) -> None:
    """Notify the account's owner by mail, once the current transaction is committed.

    `event` is the sentence in the mail. Rate-limited: past the hourly limit per address, the notice
    is dropped.
    """
    names = {"username": account.username, "event": event}
    if not mail.queue_notice(rt, session, account.email, **names):
        log.warning("user %s has had many notices by mail and gets no further one", account.id)
