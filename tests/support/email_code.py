"""Signing in with a mailed code, step by step."""

from typing import Any, cast

import sqlalchemy as sa

from app.core.runtime import Runtime
from app.mail import delivery
from app.mail.models import OutboxMail
from tests.support.api import Answer
from tests.support.factories import KnownUser, configure

START = "/auth/email-code/start"
FINISH = "/auth/email-code/finish"


def switch_on(rt: Runtime, **settings: Any) -> None:
    """Let mailed codes sign in; the mails stay in the outbox."""
    configure(rt, mail_smtp_host="localhost", mail_from_address="files@files.example")
    configure(rt, auth_email_code_sign_in_enabled=True, **settings)


def start(client: Any, email: str, **options: Any) -> str:
    """Ask for a code; return the flow token."""
    return cast("str", client.post(START, {"email": email}, **options).ok()["flow_token"])


def finish(client: Any, flow_token: str, code: str, **options: Any) -> Answer:
    """Type a code."""
    return cast("Answer", client.post(FINISH, {"flow_token": flow_token, "code": code}, **options))


def mails(rt: Runtime) -> list[dict[str, str]]:
    """Return what mails with codes are made of, oldest first."""
    found = sa.select(OutboxMail).where(OutboxMail.template == "sign_in_code")
    with rt.reading() as session:
        queued = session.scalars(found.order_by(OutboxMail.created_at, OutboxMail.id)).all()
        return [dict(delivery.unseal(rt.secret_box, mail).values) for mail in queued]


def mailed_code(rt: Runtime, client: Any, user: KnownUser, **options: Any) -> tuple[str, str]:
    """Start a sign-in; return its flow token and the code that was mailed."""
    known = {mail["code"] for mail in mails(rt)}
    flow_token = start(client, user.email, **options)
    [code] = {mail["code"] for mail in mails(rt)} - known
    return flow_token, code
