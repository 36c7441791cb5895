"""What operators do with the outbox: look, hurry, and try the server."""

from contextlib import closing
from dataclasses import asdict, dataclass, replace
from typing import Any

from sqlalchemy import ColumnElement

from app.audit import service as audit
from app.audit.models import EntityType
from app.core.access import Operator
from app.core.runtime import Runtime
from app.core.texts import folded
from app.crypto.tokens import random_uuid
from app.mail import delivery, dispatcher, queries
from app.mail.delivery import ReadyMail
from app.mail.errors import MailDeliveryFailed, MailFinished, MailNotConfigured, MailNotFound
from app.mail.mailer import SmtpConnection
from app.mail.models import MailStatus, OutboxMail
from app.mail.rendering import built_in, fill, site_name
from app.mail.service import send_ready
from app.mail.smtp_failures import Undeliverable
from app.mail.templates import Template
from app.mail.words import ENGLISH
from app.store.db import after_commit
from app.store.paging import Page, Paging

TEST_MAIL = "test_mail"
TOLD = ("id", "template", "recipient", "status", "attempts", "last_error", "created_at")


@dataclass(frozen=True)
class Flushed:
    """How many mails were sent, given up, and are still waiting.

    `error` is why the server itself failed, so that the rest was not tried; None if it did not.
    """

    sent: int
    failed: int
    waiting: int
    error: str | None


def page(
    rt: Runtime,
    paging: Paging,
    *,
    status: MailStatus | None = None,
    template: Template | None = None,
    recipient: str | None = None,
) -> Page:
    """Return a page of the outbox, newest first; `recipient` is part of an address.

    None matches all.
    """
    conditions: list[ColumnElement[bool]] = []
    if status is not None:
        conditions.append(OutboxMail.status == status)
    if template is not None:
        conditions.append(OutboxMail.template == template)
    if recipient is not None:
        conditions.append(OutboxMail.recipient.contains(folded(recipient), autoescape=True))
    with rt.reading() as session:
        found = queries.read_page(session, paging, *conditions)
    kept = delivery.list_ids_with_file(rt.config.mail_dir)
    return replace(found, items=[shown(mail, kept) for mail in found.items])


def shown(mail: OutboxMail, kept: set[str]) -> dict[str, Any]:
    """Return what operators see of a mail, without its content; `kept` lists those with a file.

    A finished mail has no due time.
    """
    return {
        **{name: getattr(mail, name) for name in TOLD},
        "due_at": None if mail.finished_at else mail.due_at,
        "finished_at": mail.finished_at,
        "is_file": mail.id in kept,
    }


def retry(rt: Runtime, by: Operator, mail_id: str) -> dict[str, Any]:
    """Make a mail that waits due now, and count no try; one that is being sent stays as it is.

    Raises: MailNotFound, MailFinished.
    """
    with rt.transaction() as session:
        queries.hurry(session, rt.clock.now(), mail_id)
        mail = session.get(OutboxMail, mail_id)
        if mail is None:
            raise MailNotFound
        if mail.status in queries.FINISHED:
            raise MailFinished
        about = {"mail_id": mail.id, "template": mail.template}
        audit.record_action(rt, session, by, EntityType.MAIL, mail.recipient, "retry", **about)
        after_commit(session, rt.mailer.due.set)
        return shown(mail, set())


def flush(rt: Runtime, by: Operator) -> Flushed:
    """Try every waiting mail once, now; stop early if the server itself fails.

    No mail is given up for that, but one whose recipient is refused for good, or which has expired.
    """
    now = rt.clock.now()
    with rt.transaction() as session:
        by.recheck(session)
        queries.hurry(session, now)
    drained = dispatcher.drain(rt, due=now)
    counts = drained.counts
    with rt.transaction() as session:
        waiting = queries.count_unfinished(session)
        error = drained.server_error
        done = Flushed(counts[MailStatus.SENT], counts[MailStatus.FAILED], waiting, error)
        audit.record_action(rt, session, by, EntityType.MAIL, "outbox", "flush", **asdict(done))
    return done


def send_test(rt: Runtime, by: Operator, recipient: str) -> None:
    """Send a test mail.

    Raises: MailNotConfigured; MailDeliveryFailed, with the reason in its message.
    """
    with rt.transaction() as session:
        audit.record_action(rt, session, by, EntityType.MAIL, recipient, "send_test_email")
    rendered = fill(built_in(TEST_MAIL, ENGLISH), {"site_name": site_name(rt)})
    try:
        send_ready(rt, ReadyMail(random_uuid(), TEST_MAIL, recipient, rendered))
    except Undeliverable as error:
        raise MailDeliveryFailed(f"The mail could not be sent: {error.reason}.") from error


def reach_server(rt: Runtime) -> None:
    """Connect to the SMTP server as for a mail, without sending one.

    Raises: MailNotConfigured; MailDeliveryFailed, with the reason in its message.
    """
    server = delivery.smtp_server(rt)
    if server is None:
        raise MailNotConfigured
    with closing(SmtpConnection(rt.mailer)) as connection:
        try:
            connection.check_server(server)
        except Undeliverable as error:
            raise MailDeliveryFailed(f"{error.reason}.") from error
