"""Use cases of the outbox, and what other areas need to fill it."""

import json
from contextlib import closing

from sqlalchemy import event
from sqlalchemy.orm import Session

from app.audit.models import Action
from app.core.runtime import Runtime
from app.core.smtp_errors import Undeliverable
from app.core.tokens import random_uuid
from app.mail import delivery
from app.mail.delivery import Carrier, Outgoing, is_smtp_configured
from app.mail.errors import MailDeliveryFailed, MailNotConfigured
from app.mail.models import MailStatus, OutboxMail
from app.mail.rendering import Wording, built_in, fill, render, site_link
from app.mail.templates import DESCRIPTIONS, Template
from app.mail.wording import life_in_words
from app.settings import keys

__all__ = ["is_smtp_configured", "life_in_words", "queue", "send_now", "send_test", "site_link"]

TEST_MAIL = "test_mail"


def queue(rt: Runtime, session: Session, template: Template, recipient: str, **values: str) -> None:
    """Write a mail into the running transaction; it leaves soon after the commit.

    `values` are the template's stored values but for `site_name`, which is added.
    """
    mail_id, now = random_uuid(), rt.clock.now()
    payload = json.dumps(_complete(rt, template, values))
    session.add(
        OutboxMail(
            id=mail_id,
            template=template,
            recipient=recipient,
            payload=rt.secret_box.seal(payload, sealed_for(mail_id)),
            status=MailStatus.QUEUED,
            attempts=0,
            created_at=now,
            due_at=now,
        )
    )
    event.listen(session, "after_commit", lambda _session: rt.mailer.due.set(), once=True)


def send_now(rt: Runtime, template: Template, recipient: str, **values: str) -> None:
    """Send a mail while the caller waits; `values` as for `queue` (decision E17).

    Not within a transaction: it may take as long as an SMTP server does.
    Raises: MailNotConfigured, MailDeliveryFailed.
    """
    description = DESCRIPTIONS[template]
    mail = Outgoing(
        mail_id=random_uuid(),
        kind=template,
        recipient=recipient,
        rendered=render(rt, template, _complete(rt, template, values)),
        username=values.get("username", ""),
        names_recipient=description.names_recipient,
    )
    try:
        _send(rt, mail)
    except Undeliverable as error:
        raise MailDeliveryFailed from error


def send_test(rt: Runtime, recipient: str) -> None:
    """Send a mail that only shows that mail arrives.

    Raises: MailNotConfigured; MailDeliveryFailed, with the reason in its message.
    """
    wording = Wording("{{site_name}}: test mail", built_in(TEST_MAIL))
    rendered = fill(wording, {"site_name": site_name(rt)})
    try:
        _send(rt, Outgoing(random_uuid(), TEST_MAIL, recipient, rendered))
    except Undeliverable as error:
        raise MailDeliveryFailed(f"The mail could not be sent: {error.reason}.") from error


def sealed_for(mail_id: str) -> str:
    """Return the name under which a mail's payload is sealed."""
    return f"mail_outbox:{mail_id}"


def site_name(rt: Runtime) -> str:
    """Return what the site calls itself in a mail."""
    return rt.settings.get(keys.BRANDING_TITLE)


def _complete(rt: Runtime, template: Template, values: dict[str, str]) -> dict[str, str]:
    """Return the stored values with `site_name`; a forgotten one would show as `{{name}}`."""
    complete = values | {"site_name": site_name(rt)}
    if complete.keys() != DESCRIPTIONS[template].stored:
        raise ValueError(f"{template} is queued with {sorted(values)}")
    return complete


def _send(rt: Runtime, mail: Outgoing) -> None:
    """Send a mail and note it in the audit log.

    Raises: MailNotConfigured, Undeliverable.
    """
    if not is_smtp_configured(rt):
        raise MailNotConfigured
    try:
        with closing(Carrier(rt)) as carrier:
            carrier.take(mail)
    except Undeliverable as error:
        _record(rt, Action.MAIL_DELIVERY_FAILED, mail, error=error.reason)
        raise
    _record(rt, Action.MAIL_SEND, mail)


def _record(rt: Runtime, action: Action, mail: Outgoing, **details: str) -> None:
    with rt.transaction() as session:
        delivery.record(rt, session, action, mail.recipient, mail.kind, mail, **details)
