"""What an operator does with the outbox as a whole: look, send now, clean up, re-encrypt."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy.orm import Session

from app.core import bulk
from app.core.runtime import Runtime
from app.core.secret_box import SecretUnreadable
from app.mail import dispatcher, queries, service
from app.mail.models import MailStatus
from app.mail.rendering import Rendered, fill, unknown_placeholders, variables, wording
from app.mail.templates import DESCRIPTIONS, Template

KEPT = timedelta(days=7)
SAMPLES = {
    "username": "alice",
    "email": "alice@example.com",
    "previous_email": "alice@example.com",
    "new_email": "alice.new@example.com",
    "token": "SAMPLE-TOKEN",
    "code": "12345678",
    "provider_name": "Example Login",
    "expires_in": "30 minutes",
}


@dataclass(frozen=True)
class Flushed:
    """How many mails left, how many were given up, and how many are still to be sent."""

    sent: int
    failed: int
    waiting: int


@dataclass(frozen=True)
class Preview:
    """A template with sample values; `unknown` are placeholders it does not know."""

    rendered: Rendered
    unknown: list[str]


def list_newest(rt: Runtime, status: str | None, most: int) -> Sequence[Any]:
    """Return the newest mails of the outbox, without what they say."""
    with rt.reading() as connection:
        return queries.list_newest(connection, status, most)


def flush(rt: Runtime) -> Flushed:
    """Try every waiting mail once, now."""
    now = rt.clock.now()
    with rt.transaction() as session:
        queries.hurry(session, now)
    counts = dispatcher.drain(rt, due=now)
    with rt.reading() as connection:
        waiting = queries.count_unfinished(connection)
    return Flushed(counts[MailStatus.SENT], counts[MailStatus.FAILED], waiting)


def preview(rt: Runtime, template: Template) -> Preview:
    """Fill a template in as it is in force now."""
    known = DESCRIPTIONS[template]
    samples = {
        **SAMPLES,
        "site_name": service.site_name(rt),
        "invitation_url": service.site_link(rt, "/invite/SAMPLE-TOKEN"),
    }
    values = variables(rt, template, {name: samples[name] for name in known.stored})
    rendered = fill(wording(rt, template), values)
    return Preview(rendered, unknown_placeholders(rendered))


def delete_finished(rt: Runtime) -> int:
    """Delete mails that were sent or given up a week ago; return how many."""
    before = rt.clock.now() - KEPT
    return bulk.delete_in_batches(
        rt, lambda session, most: queries.delete_finished(session, before, most)
    )


def reseal(rt: Runtime, session: Session) -> int:
    """Encrypt what waiting mails hold under the newest key; return how many changed.

    What cannot be decrypted is left alone: a key that comes back may still open it.
    """
    changed = 0
    for mail_id, payload in queries.list_sealed(session):
        if rt.secret_box.is_current(payload):
            continue
        name = service.sealed_for(mail_id)
        try:
            clear = rt.secret_box.open(payload, name)
        except SecretUnreadable:
            continue
        sealed = rt.secret_box.seal(clear, name)
        changed += queries.replace_payload(session, mail_id, payload, sealed)
    return changed
