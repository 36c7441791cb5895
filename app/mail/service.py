"""Use cases of the outbox, and the functions other areas queue mails with."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy.orm import Session

from app.audit import service as audit
from app.core.config import Bucket
from app.core.runtime import Runtime
from app.crypto.secret_box import Resealed, Resealer
from app.crypto.tokens import random_uuid
from app.mail import delivery, queries, words
from app.mail.delivery import Content, ReadyMail, Transport
from app.mail.errors import MailDeliveryFailed, MailNotConfigured
from app.mail.models import MailStatus, OutboxMail
from app.mail.rendering import own_html, site_name
from app.mail.smtp_failures import Undeliverable
from app.mail.templates import DESCRIPTIONS, Template
from app.settings import page_keys
from app.settings import service as settings
from app.store import bulk
from app.store.db import after_commit
from app.store.key_use import KeyUse
from app.web import languages

# Limits how many mails a caller can have sent to addresses of their choice.
REQUESTED_MAIL_BUCKET = Bucket(per_second=10 / 3600, burst=10)


def limit_requested_mail(rt: Runtime, tier: str, whose: str) -> None:
    """Rate-limit a mail whose recipient the caller chooses; concurrent requests all count.

    Call it before the transaction, which blocks other writers and so must not wait for Redis.
    Raises: RateLimited, if `whose` has used up this tier.
    """
    if rt.config.rate_limits:
        rt.limits.rates.take(tier, REQUESTED_MAIL_BUCKET, whose)


def queue(
    rt: Runtime,
    session: Session,
    template: Template,
    recipient: str,
    *,
    expires_at: datetime | None = None,
    due_at: datetime | None = None,
    topic: str | None = None,
    language: str | None = None,
    is_answer: bool = False,
    lifetime: int | None = None,
    **values: str,
) -> None:
    """Queue a mail within the running transaction; it is sent soon after the commit.

    From `expires_at` on, its content is useless and it is no longer sent. Before `due_at` it is not
    sent either. `topic` is what it is found by. `language` is the BCP 47 tag of its reader, who
    has just asked for it if `is_answer`: see `language_of`. `lifetime` is for how many seconds its
    link or code works. `values` are the template's others.
    """
    mail_id, now = random_uuid(), rt.clock.now()
    content = _content(rt, template, values, language, lifetime, is_answer=is_answer)
    session.add(
        OutboxMail(
            id=mail_id,
            template=template,
            recipient=recipient,
            payload=delivery.seal(rt.secret_box, mail_id, content._replace(expires_at=expires_at)),
            status=MailStatus.QUEUED,
            attempts=0,
            created_at=now,
            due_at=due_at or now,
            topic=topic,
        )
    )
    after_commit(session, rt.mailer.due.set)  # so that it need not wait for the next poll


def is_smtp_configured(rt: Runtime) -> bool:
    """Return whether mail is sent by SMTP."""
    return settings.is_mail_complete(rt.settings.get)


def send_now(
    rt: Runtime,
    template: Template,
    recipient: str,
    *,
    language: str | None = None,
    lifetime: int | None = None,
    **values: str,
) -> None:
    """Send a mail synchronously to its reader, who waits for it; what it says as for `queue`.

    Never call it within a transaction: it may take as long as the SMTP server does.
    Raises: MailNotConfigured, MailDeliveryFailed.
    """
    content = _content(rt, template, values, language, lifetime, is_answer=True)
    mail = delivery.ready_mail(rt, random_uuid(), template, recipient, content)
    try:
        send_ready(rt, mail)
    except Undeliverable as error:
        raise MailDeliveryFailed from error


def language_of(
    rt: Runtime, template: Template, tag: str | None, html: str = "", *, is_answer: bool = False
) -> str:
    """Return the language of a mail to somebody who has chosen `tag`; None: has chosen none.

    If that is not offered, it is what the browser asks for, of an answer to its reader's own
    request only: nobody chooses in which language others are warned or invited. Else it is the
    site's first. An operator's own `html`, by default what is set, is for all: words that are
    filled in are in the site's first.
    """
    offered = rt.settings.get(page_keys.PAGES_LANGUAGES)
    if html or own_html(rt, template):
        return offered[0]
    asked = languages.of_request(offered) if is_answer else None
    return languages.best(tag, offered) or asked or offered[0]


def lifetime_in_words(template: Template, seconds: int, language: str) -> dict[str, str]:
    """Return what a mail says of how long its link or code works."""
    # Of codes, `expires_in` is exact, and `good_for` rounded for human readers.
    if "good_for" in DESCRIPTIONS[template].variables:
        exact, rounded = words.exact_duration, words.rounded_duration
        return {"expires_in": exact(seconds, language), "good_for": rounded(seconds, language)}
    return {"expires_in": words.duration(seconds, language)}


def _content(
    rt: Runtime,
    template: Template,
    values: Mapping[str, str],
    tag: str | None,
    lifetime: int | None,
    *,
    is_answer: bool,
) -> Content:
    """Complete what a mail says, and check that: a missing value would show as `{{name}}`."""
    language, known = language_of(rt, template, tag, is_answer=is_answer), DESCRIPTIONS[template]
    if template is Template.SECURITY_NOTICE:
        language = tag or words.ENGLISH  # of the sentence in it
    complete = {**values, "site_name": site_name(rt)}
    if lifetime is not None:
        complete |= lifetime_in_words(template, lifetime, language)
    if "lang" in known.variables:
        complete.setdefault("lang", tag or language)
    if complete.keys() != known.stored:
        raise ValueError(f"{template} is queued with {sorted(values)}")
    return Content(complete, language=language)


def send_ready(rt: Runtime, mail: ReadyMail) -> None:
    """Send a mail and record it in the audit log.

    Raises: MailNotConfigured, Undeliverable.
    """
    if not is_smtp_configured(rt):
        raise MailNotConfigured
    try:
        with closing(Transport(rt)) as transport:
            transport.send(mail)
    except Undeliverable as error:
        _record(rt, mail, MailStatus.FAILED, error.reason)
        raise
    _record(rt, mail, MailStatus.SENT)


def _record(rt: Runtime, mail: ReadyMail, status: MailStatus, error: str | None = None) -> None:
    delivery.MAILS.labels(status).inc()
    audit.record_best_effort(rt, delivery.event(mail.recipient, mail.kind, mail, error))


RETENTION = timedelta(days=7)


@dataclass(frozen=True)
class Outbox:
    """The number of mails by status, and how long mails have been waiting, in seconds.

    `longest_due_seconds` restarts with each attempt, so it grows only while no sender is running.
    `oldest_seconds` is the age of the oldest mail yet to be sent, regardless of attempts.
    """

    counts: dict[MailStatus, int]
    longest_due_seconds: float
    oldest_seconds: float


def outbox(rt: Runtime, session: Session) -> Outbox:
    """Return the fill level of the outbox: mails yet to be sent, and mails given up."""
    found = {MailStatus(row.status): row for row in queries.list_unsent(session)}
    counts = {
        status: found[status].mails if status in found else 0
        for status in (MailStatus.QUEUED, MailStatus.SENDING, MailStatus.FAILED)
    }
    waiting = found.get(MailStatus.QUEUED)
    now = rt.clock.now()
    due = (now - waiting.first_due_at).total_seconds() if waiting else 0.0
    unsent = [found[status] for status in queries.UNFINISHED if status in found]
    oldest = max(((now - one.first_created_at).total_seconds() for one in unsent), default=0.0)
    return Outbox(counts, max(0.0, due), max(0.0, oldest))


def delete_finished(rt: Runtime) -> int:
    """Delete mails that were sent or given up over a week ago; return how many."""
    before = rt.clock.now() - RETENTION
    return bulk.delete_in_batches(rt, queries.delete_finished, before)


def reseal(rt: Runtime, session: Session) -> Resealed:
    """Re-encrypt the payloads of waiting mails under the newest key."""
    resealer, changed, last_id = Resealer(rt.secret_box), 0, ""
    while batch := queries.list_sealed(session, last_id, bulk.BATCH_ROWS):
        for mail in batch:
            fresh = resealer.resealed(mail.payload or "", delivery.name_of(mail.id))
            if fresh is not None:
                mail.payload = fresh
                changed += 1
            last_id = mail.id
    return Resealed(changed, resealer.unreadable)


def count_keys(rt: Runtime, session: Session, use: KeyUse) -> None:
    """Count the mails yet to be sent by the key their payload is encrypted with."""
    use.add_column(rt.secret_box, session, OutboxMail.payload, OutboxMail.id, delivery.name_of)
