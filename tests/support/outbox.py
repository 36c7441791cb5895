"""Queues mails, and sets the SMTP server they are sent to."""

from collections.abc import Sequence
from typing import Any, cast

import sqlalchemy as sa

from app.core.runtime import Runtime
from app.mail import dispatcher, service
from app.mail.models import OutboxMail
from app.mail.templates import Template
from tests.support.factories import configure
from tests.support.smtp import HOST

TOKEN = "cv_a-token-of-a-mail-0123456789"


def use_smtp(rt: Runtime, port: int, *, tls: bool = False, **settings: Any) -> None:
    """Configure the service to send by this SMTP server."""
    configure(
        rt,
        mail_smtp_host=HOST,
        mail_smtp_port=port,
        mail_from_address="files@files.example",
        mail_security=tls,
        **{f"mail_smtp_{name}": value for name, value in settings.items()},
    )


def queue(
    rt: Runtime,
    recipient: str = "ada@example.com",
    template: Template = Template.PASSWORD_RESET,
    *,
    language: str | None = None,
    **values: Any,
) -> None:
    """Put a mail into the outbox."""
    values = values or {"username": "Ada", "token": TOKEN, "expires_in": "1 hour"}
    with rt.transaction() as session:
        service.queue(rt, session, template, recipient, language=language, **values)


def rows(rt: Runtime) -> Sequence[sa.Row[Any]]:
    """Return the rows of the outbox, oldest first."""
    statement = sa.select(*OutboxMail.__table__.columns).order_by(OutboxMail.created_at)
    with rt.reading() as connection:
        return connection.execute(statement).all()


def only_row(rt: Runtime) -> sa.Row[Any]:
    [row] = rows(rt)
    return row


def attempt(rt: Runtime) -> sa.Row[Any]:
    """Queue a mail and try to send it once; return its row."""
    queue(rt)
    dispatcher.drain(rt)
    return only_row(rt)


def refusal(rt: Runtime, password: str = "none", *, attempts: int = 0) -> str:
    """Return the error of a mail that was not sent, and by default did not count as an attempt."""
    row = attempt(rt)
    assert (row.status, row.attempts) == ("queued", attempts)
    assert TOKEN not in row.last_error
    assert password not in row.last_error
    return cast("str", row.last_error)
