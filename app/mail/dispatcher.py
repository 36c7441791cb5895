"""Sends the mails in the outbox, in the background of every serving process.

Invariant: a mail is sent only under a lease, and only the lease's holder records the outcome. So it
is sent once; again only if its sender died between sending and recording, or could not reach the
database to record the outcome before the lease expired.

A mail is given up when the server refuses its recipient for good, or after three days. All other
refusals, and failures of the server before it had the mail, are no fault of the mail's: it waits.
So it does while no key decrypts it. Six attempts count if the server may have the mail, as it would
arrive twice, or if the mail itself cannot be made. What an operator tries by hand never counts.
"""

import collections
import logging
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from app.audit import service as audit
from app.core.logs import Outage
from app.core.runtime import Runtime
from app.crypto.secret_box import SecretUnreadable
from app.crypto.tokens import random_uuid
from app.mail import delivery, queries, words
from app.mail.delivery import Content, ReadyMail, Transport
from app.mail.models import MailStatus, OutboxMail
from app.mail.outcomes import (
    MAX_ATTEMPTS,
    MAX_PAUSE_FOR_KEY,
    MAX_PAUSE_FOR_MAIL,
    NO_KEY,
    MailOutcome,
    Tried,
    after_failure,
    after_try,
    in_outage,
)
from app.mail.smtp_failures import Undeliverable
from app.mail.smtp_replies import apart_from
from app.mail.templates import Template
from app.settings import mail_keys
from app.store.database import DATABASE_ERRORS, reason_of

log = logging.getLogger(__name__)

LEASE = timedelta(seconds=60)  # longer than any attempt, see mail.mailer.Timeouts
TOLERANCE = timedelta(seconds=60)  # clock skew between two instances
LIFETIME_REFRESH_AFTER = timedelta(minutes=1)
EXPIRED = "its link or code has expired"
STOP_SECONDS = 4.0  # gunicorn kills a worker after 5 s
MAX_STEP_SECONDS = 5.0
BUSY_SECONDS = 0.0005  # about one request
YIELD_FACTOR = 4.0
MAX_YIELD_SECONDS = 0.1
MARK_TRIES = 5
MARK_PAUSE_SECONDS = 1.0

# By status: the latest due time that a lease or a back-off may have, from now, and the one that a
# mail gets which is due later than that. A lease is given its usual time, as its holder may be
# alive.
LATEST_DUE = (
    (MailStatus.SENDING, LEASE + TOLERANCE, LEASE),
    (MailStatus.QUEUED, MAX_PAUSE_FOR_MAIL + TOLERANCE, timedelta(0)),
)


@dataclass
class DrainResult:
    """The outcomes of the mails that were due, counted by status.

    `server_error` is the failure of the server itself that ended the run early; None without one.
    """

    counts: collections.Counter[MailStatus] = field(default_factory=collections.Counter)
    server_error: str | None = None


def start(rt: Runtime) -> Callable[[], None]:
    """Start sending mails in the background; return a function that stops it.

    Stopping waits briefly for the mail in progress; another process retries it after the lease.
    """
    stopped = threading.Event()
    thread = threading.Thread(target=_run, args=(rt, stopped), name="mail dispatcher", daemon=True)
    thread.start()

    def stop() -> None:
        stopped.set()
        rt.mailer.due.set()
        thread.join(timeout=STOP_SECONDS)

    return stop


def drain(rt: Runtime, *, due: datetime | None = None) -> DrainResult:
    """Send every mail that is due, now or at the time `due`.

    Stops early when the server itself fails, as the other mails would fail alike: at once if it
    refuses the connection or the sender, else at the second recipient in a row, as well as when it
    refuses two recipients in the same words. One recipient at whom it always fails, by hanging up
    say, must not hold up all the others.
    """
    with closing(Transport(rt)) as transport:
        return _drain(rt, transport, due, lambda: False)


def _drain(
    rt: Runtime, transport: Transport, due: datetime | None, is_stopped: Callable[[], bool]
) -> DrainResult:
    round_ = _Round(rt, transport, due)
    if _is_any_due(rt, due or rt.clock.now()):  # else without taking a write lock
        while not is_stopped() and round_.goes_on():
            _let_requests_go_first(rt)
        round_.end()
    return round_.drained


class _Round:
    """Mails sent one after another, and what the server's refusals have in common."""

    def __init__(self, rt: Runtime, transport: Transport, due: datetime | None) -> None:
        self.drained = DrainResult()
        self._rt, self._transport, self._due = rt, transport, due
        # The last mail at which the server failed, since a success; the last mail, if it failed.
        self._failed: Tried | None = None
        self._last: Tried | None = None
        # It would be given up, but the next one may show that everybody is refused alike. Until
        # then it is only leased: if this process dies, it is refused once more.
        self._held: Tried | None = None

    def goes_on(self) -> bool:
        """Send one mail; return whether there may be another."""
        failed = self._failed or self._last
        tried = _try_next(
            self._rt,
            self._transport,
            self._due or self._rt.clock.now(),
            exclude_recipient=failed.row.recipient if failed else None,
        )
        if tried is None:
            is_over = self._failed is not None or self._last is None
            self.end()
            return not is_over
        if self._last is not None and tried.is_refused_like(self._last):
            self._everybody_is_refused(tried)
            return False
        self.end()
        if tried.is_doubtful:
            self._held = tried
        else:
            self._record(tried)
        return self._may_go_on_after(tried)

    def end(self) -> None:
        """Record a mail that was held back, since nobody was refused like it."""
        held, self._held, self._last = self._held, None, None
        if held is not None and _is_refused_like_others(self._rt, held):
            held = held.waiting(self._rt)
            self.drained.server_error = held.outcome.error
        if held is not None:
            self._record(held)

    def _may_go_on_after(self, tried: Tried) -> bool:
        failure = tried.outcome.failure
        self._last = tried if failure is not None else None
        if tried.outcome.status is MailStatus.SENT:
            self.drained.server_error = self._failed = None
        if failure is None or not failure.is_server_failure:
            return True
        self.drained.server_error = tried.outcome.error
        is_second, self._failed = self._failed is not None, tried
        return failure.may_be_mail_specific and not is_second

    def _everybody_is_refused(self, tried: Tried) -> None:
        held, self._held = self._held, None
        for one in (held, tried):
            if one is not None:
                self._record(one.waiting(self._rt))
        self.drained.server_error = tried.outcome.error

    def _record(self, tried: Tried) -> None:
        self.drained.counts[tried.outcome.status] += 1
        _record(self._rt, tried)


def _let_requests_go_first(rt: Runtime) -> None:
    """Yield to waiting requests; the longer they run, the longer the dispatcher pauses."""
    began = rt.clock.monotonic()
    rt.clock.sleep(0)
    taken = rt.clock.monotonic() - began
    if taken > BUSY_SECONDS:
        rt.clock.sleep(min(YIELD_FACTOR * taken, MAX_YIELD_SECONDS))


def _try_next(
    rt: Runtime, transport: Transport, due: datetime, *, exclude_recipient: str | None
) -> Tried | None:
    """Try one mail that is due at the time `due`, and return what came of it, to be recorded.

    `exclude_recipient` excludes a recipient, and then mails that have not failed yet come first.
    Returns None if no such mail is due.
    """
    until = rt.clock.now() + LEASE
    with rt.transaction() as session:
        row = queries.lease_next(
            session, random_uuid(), due=due, until=until, exclude_recipient=exclude_recipient
        )
    if row is None:
        return None
    mail, outcome = _attempt(rt, transport, row)
    return Tried(row, mail, outcome)


def _record(rt: Runtime, tried: Tried) -> None:
    for tries_left in reversed(range(MARK_TRIES)):
        try:
            _settle(rt, tried.row, tried.mail, tried.outcome)
        except DATABASE_ERRORS:
            if not tries_left:
                raise
            rt.clock.sleep(MARK_PAUSE_SECONDS)  # a mail sent but not recorded is sent again
        else:
            break


def _is_refused_like_others(rt: Runtime, tried: Tried) -> bool:
    """Return whether the last refusals, of this round or before, were in the same words."""
    recipient = tried.row.recipient
    said = apart_from(recipient, tried.outcome.error or "")
    with rt.reading() as session:
        others = queries.list_refusals(session, rt.clock.now(), except_for=recipient)
    return any(apart_from(other, error) == said for other, error in others)


def _attempt(
    rt: Runtime, transport: Transport, row: OutboxMail
) -> tuple[ReadyMail | None, MailOutcome]:
    mail, waited = None, rt.clock.now() - row.created_at
    if row.attempts > MAX_ATTEMPTS:
        # The last attempt has no outcome, so its sender died during it.
        return mail, after_try("the last attempt was never finished", row)
    try:
        stored = delivery.unseal(rt.secret_box, row)
        mail = _ready_mail(rt, row, stored)
        if stored.expires_at is not None and stored.expires_at <= rt.clock.now():
            log.warning("mail %s to %s does not leave: %s", row.id, row.recipient, EXPIRED)
            return mail, MailOutcome(MailStatus.FAILED, EXPIRED, counts=False)
        transport.send(mail)
    except Undeliverable as failure:
        log.warning("mail %s to %s did not leave: %s", row.id, row.recipient, failure.reason)
        return mail, after_failure(failure, row, waited)
    except SecretUnreadable:
        log.warning(
            "mail %s to %s does not leave: %s, see `flask doctor`", row.id, row.recipient, NO_KEY
        )
        return mail, in_outage(NO_KEY, row, waited, MAX_PAUSE_FOR_KEY)
    except DATABASE_ERRORS:
        raise
    except Exception as error:
        # One mail that cannot be rendered must not stop all others.
        log.exception("mail %s could not be rendered", row.id)
        reason = f"the mail could not be rendered ({type(error).__name__})"
        return mail, after_try(reason, row)
    return mail, MailOutcome(MailStatus.SENT)


def _ready_mail(rt: Runtime, row: OutboxMail, stored: Content) -> ReadyMail:
    now = rt.clock.now()
    if stored.expires_at is not None and now - row.created_at > LIFETIME_REFRESH_AFTER:
        # The stored text states the lifetime that was left when the mail was queued.
        left = max(0, int((stored.expires_at - now).total_seconds()))
        names = {"expires_in"} | ({"good_for"} & stored.values.keys())
        told = dict.fromkeys(names, words.rounded_duration(left, stored.language))
        stored = stored._replace(values={**stored.values, **told})
    return delivery.ready_mail(rt, row.id, Template(row.template), row.recipient, stored)


def _settle(rt: Runtime, leased: OutboxMail, mail: ReadyMail | None, outcome: MailOutcome) -> None:
    now = rt.clock.now()
    is_finished = outcome.status is not MailStatus.QUEUED
    with rt.transaction() as session:
        row = queries.find_leased(session, leased)
        if row is None:
            log.warning("mail %s took longer than its lease; another sender has it now", leased.id)
            return
        row.status, row.last_error, row.lease = outcome.status, outcome.error, None
        row.attempts, row.is_hurried = _attempts(leased, outcome), False
        # Of a finished mail as well, so that `delete_finished` can use the index.
        row.due_at = now + outcome.pause
        if is_finished:
            row.payload, row.finished_at = None, now
            event = delivery.event(row.recipient, row.template, mail, outcome.error)
            audit.record(rt, session, event)
    if is_finished:
        delivery.MAILS.labels(outcome.status).inc()


def _attempts(leased: OutboxMail, outcome: MailOutcome) -> int:
    """Return how many tries a mail has used up; one by hand counts only if it was the last."""
    if leased.is_hurried:
        return leased.attempts + (outcome.status is MailStatus.SENT)
    return min(leased.attempts if outcome.counts else leased.attempts - 1, MAX_ATTEMPTS)


def _run(rt: Runtime, stopped: threading.Event) -> None:
    outage = Outage(
        log,
        "mails wait: the database does not answer",
        "mails are sent again: the database answers",
    )
    with closing(Transport(rt)) as transport:
        while True:
            rt.mailer.due.clear()
            if stopped.is_set():  # after clear(), which may have swallowed stop's wake-up
                return
            try:
                _drain(rt, transport, None, stopped.is_set)
            except DATABASE_ERRORS as error:
                outage.record_failure(reason_of(error))
            except Exception:
                # Nothing restarts this thread.
                log.exception("mails wait: sending them failed")
            else:
                outage.record_success()
            _wait(rt, transport)


def _wait(rt: Runtime, transport: Transport) -> None:
    """Wait until the next poll is due or this process queues a mail.

    Waits in steps, because the poll interval may be changed meanwhile.
    """
    waited = 0.0
    while (left := _interval(rt) - waited) > 0:
        step = min(left, MAX_STEP_SECONDS)
        if rt.mailer.due.wait(step):
            return
        # Mails in a busy period share a connection; an idle one is given up to other clients.
        transport.close()
        waited += step


def _interval(rt: Runtime) -> float:
    try:
        return rt.settings.get(mail_keys.MAIL_DISPATCH_INTERVAL_SECONDS)
    except DATABASE_ERRORS:
        return mail_keys.MAIL_DISPATCH_INTERVAL_SECONDS.default


def _is_any_due(rt: Runtime, due: datetime) -> bool:
    """Return whether a mail is due, after rescheduling those that a clock change left stranded."""
    now = rt.clock.now()
    with rt.reading() as session:
        if not any(
            queries.is_any_due(session, one, after=now + late) for one, late, _ in LATEST_DUE
        ):
            return any(queries.is_any_due(session, one, until=due) for one in queries.UNFINISHED)
    with rt.transaction() as session:
        count = sum(
            queries.reschedule(session, status, after=now + latest, due_at=now + usual)
            for status, latest, usual in LATEST_DUE
        )
    log.warning("the clock was set back: %s mails had been postponed for too long", count)
    return True
