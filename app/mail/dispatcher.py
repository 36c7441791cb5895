"""Sends the mails in the outbox, in the background of every serving process.

Invariant: a mail is sent only under a lease, and only the lease's holder records the outcome. So it
is sent once; again only if its sender died between sending and recording, or could not reach the
database to record the outcome before the lease expired.
"""

import collections
import logging
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from app.audit import service as audit
from app.core.database.database import DATABASE_ERRORS
from app.core.database.failures import reason_of
from app.core.outages import Outage
from app.core.runtime import Runtime
from app.core.secret_box import SecretUnreadable
from app.core.smtp_errors import Undeliverable
from app.core.tokens import random_uuid
from app.mail import delivery, outcomes, payload, queries
from app.mail.delivery import ReadyMail, Transport
from app.mail.durations import rounded_duration
from app.mail.models import MailStatus
from app.mail.outcomes import MAX_ATTEMPTS, Outcome
from app.mail.payload import Content
from app.mail.queries import Attempt, Leased
from app.mail.templates import Template
from app.settings import keys

log = logging.getLogger(__name__)

LEASE = timedelta(seconds=60)  # longer than any attempt, see core.mailer.Timeouts
TOLERANCE = timedelta(seconds=60)  # clock skew between two instances
LIFETIME_REFRESH_AFTER = timedelta(minutes=1)
EXPIRED = "what it brings has expired"
STOP_SECONDS = 4.0  # gunicorn kills a worker after 5 s
MAX_STEP_SECONDS = 5.0
BUSY_SECONDS = 0.0005  # about one request
YIELD_FACTOR = 4.0
MAX_YIELD_SECONDS = 0.1
MARK_TRIES = 5
MARK_PAUSE_SECONDS = 1.0


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
        rt.mail_due.set()
        thread.join(timeout=STOP_SECONDS)

    return stop


def drain(rt: Runtime, *, due: datetime | None = None) -> DrainResult:
    """Send every mail that is due, now or at the time `due`.

    Stops early when the server itself fails, as the other mails would fail alike: at once if it
    refuses the connection or the sender, else at the second recipient in a row. One recipient at
    whom it always fails, by hanging up say, must not hold up all the others.
    """
    with closing(Sender(rt)) as sender:
        return _drain(rt, sender, due, lambda: False)


def _drain(
    rt: Runtime, sender: "Sender", due: datetime | None, is_stopped: Callable[[], bool]
) -> DrainResult:
    drained = DrainResult()
    if not _is_any_due(rt, due or rt.clock.now()):
        return drained  # without taking a write lock
    failed_at = None
    while not is_stopped():
        tried = sender.send_next(due or rt.clock.now(), exclude_recipient=failed_at)
        if tried is None:
            break
        recipient, outcome = tried
        drained.counts[outcome.status] += 1
        if outcome.is_server_failure:
            drained.server_error = outcome.error
            if failed_at is not None or not outcome.may_be_mail_specific:
                break
            failed_at = recipient
        elif outcome.status is MailStatus.SENT:
            drained.server_error = failed_at = None
        _let_requests_go_first(rt)
    return drained


def _let_requests_go_first(rt: Runtime) -> None:
    """Yield to waiting requests; the longer they run, the longer the dispatcher pauses."""
    began = rt.clock.monotonic()
    rt.clock.sleep(0)
    taken = rt.clock.monotonic() - began
    if taken > BUSY_SECONDS:
        rt.clock.sleep(min(YIELD_FACTOR * taken, MAX_YIELD_SECONDS))


class Sender:
    """Sends mails one by one."""

    def __init__(self, rt: Runtime) -> None:
        self._rt = rt
        self._transport = Transport(rt)

    def send_next(
        self, due: datetime, *, exclude_recipient: str | None
    ) -> tuple[str, Outcome] | None:
        """Send one mail that is due at the time `due`; return its recipient and the outcome.

        `exclude_recipient` excludes a recipient, and then mails that have not failed yet come
        first. Returns None if no such mail is due.
        """
        lease, until = random_uuid(), self._rt.clock.now() + LEASE
        row = queries.lease_next(
            self._rt.database, lease, due=due, until=until, exclude_recipient=exclude_recipient
        )
        if row is None:
            return None
        mail, outcome = self._attempt(row)
        self._mark(row, lease, mail, outcome)
        return row.recipient, outcome

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()

    def _attempt(self, row: Leased) -> tuple[ReadyMail | None, Outcome]:
        mail, waited = None, self._rt.clock.now() - row.created_at
        if row.attempts > MAX_ATTEMPTS:
            # The last attempt has no outcome, so its sender died during it.
            return mail, Outcome(MailStatus.FAILED, "the last attempt was never finished")
        try:
            stored = payload.unseal(self._rt.secret_box, row.id, row.payload)
            mail = _ready_mail(self._rt, row, stored)
            if stored.expires_at is not None and stored.expires_at <= self._rt.clock.now():
                log.warning("mail %s to %s does not leave: %s", row.id, row.recipient, EXPIRED)
                return mail, Outcome(MailStatus.FAILED, EXPIRED, counts=False)
            self._transport.send(mail)
        except Undeliverable as error:
            log.warning("mail %s to %s did not leave: %s", row.id, row.recipient, error.reason)
            return mail, outcomes.after_failure(error, row.attempts, waited)
        except SecretUnreadable:
            log.warning("mail %s to %s does not leave: %s", row.id, row.recipient, outcomes.NO_KEY)
            return mail, outcomes.without_key(waited)
        except DATABASE_ERRORS:
            raise
        except Exception as error:
            # One mail that cannot be rendered must not stop all others.
            log.exception("mail %s could not be made", row.id)
            reason = f"the mail could not be made ({type(error).__name__})"
            return mail, Outcome(outcomes.status_after(row.attempts), reason)
        return mail, Outcome(MailStatus.SENT)

    def _mark(self, row: Leased, lease: str, mail: ReadyMail | None, outcome: Outcome) -> None:
        """Record the outcome, with retries: a mail sent but not recorded would be sent again."""
        for _ in range(MARK_TRIES - 1):
            try:
                _settle(self._rt, row, lease, mail, outcome)
            except DATABASE_ERRORS:
                self._rt.clock.sleep(MARK_PAUSE_SECONDS)
            else:
                return
        _settle(self._rt, row, lease, mail, outcome)


def _ready_mail(rt: Runtime, row: Leased, stored: Content) -> ReadyMail:
    values, now = stored.values, rt.clock.now()
    if stored.expires_at is not None and now - row.created_at > LIFETIME_REFRESH_AFTER:
        # The stored text states the lifetime that was left when the mail was queued.
        left = max(0, int((stored.expires_at - now).total_seconds()))
        values = {**values, "expires_in": rounded_duration(left)}
    return delivery.ready_mail(rt, row.id, Template(row.template), row.recipient, values)


def _settle(rt: Runtime, row: Leased, lease: str, mail: ReadyMail | None, outcome: Outcome) -> None:
    now, error = rt.clock.now(), outcome.error
    made = row.attempts if outcome.counts else row.attempts - 1
    attempt = Attempt(row.id, lease, min(made, MAX_ATTEMPTS))
    if outcome.status is MailStatus.QUEUED:
        due = now + outcomes.pause(outcome, row.attempts, now - row.created_at)
        is_ours = queries.settle_retry(rt.database, attempt, error=error, due=due)
    else:
        status = outcome.status
        entry = audit.entry(rt, delivery.event(row.recipient, row.template, mail, error))
        is_ours = queries.settle_finished(
            rt.database, attempt, entry, status=status, error=error, now=now
        )
        if is_ours:
            delivery.count(status)
    if not is_ours:
        log.warning("mail %s took longer than its lease; another sender has it now", row.id)


def _run(rt: Runtime, stopped: threading.Event) -> None:
    outage = Outage(
        log,
        "mails wait: the database does not answer",
        "mails go on: the database answers again",
    )
    with closing(Sender(rt)) as sender:
        while True:
            rt.mail_due.clear()
            if stopped.is_set():  # after clear(), which may have swallowed stop's wake-up
                return
            try:
                _drain(rt, sender, None, stopped.is_set)
            except DATABASE_ERRORS as error:
                outage.record_failure(reason_of(error))
            except Exception:
                # Nothing restarts this thread.
                log.exception("mails wait: sending them failed")
            else:
                outage.record_success()
            _wait(rt, sender)


def _wait(rt: Runtime, sender: Sender) -> None:
    """Wait until the next poll is due or this process queues a mail.

    Waits in steps, because the poll interval may be changed meanwhile.
    """
    waited = 0.0
    while (left := _interval(rt) - waited) > 0:
        step = min(left, MAX_STEP_SECONDS)
        if rt.mail_due.wait(step):
            return
        # Mails in a busy period share a connection; an idle one is given up to other clients.
        sender.close()
        waited += step


def _interval(rt: Runtime) -> float:
    try:
        return rt.settings.get(keys.MAIL_DISPATCH_INTERVAL_SECONDS)
    except DATABASE_ERRORS:
        return keys.MAIL_DISPATCH_INTERVAL_SECONDS.default


def _is_any_due(rt: Runtime, due: datetime) -> bool:
    """Return whether a mail is due, after rescheduling those that a clock change left stranded."""
    now = rt.clock.now()
    bounds = {
        "longest_lease": now + LEASE + TOLERANCE,
        "longest_pause": now + outcomes.MAX_PAUSE + TOLERANCE,
    }
    found = queries.check_pending_work(rt.database, due, **bounds)
    if not found.has_stranded:
        return found.has_due
    with rt.transaction() as session:
        count = queries.reschedule_stranded(session, lease_until=now + LEASE, now=now, **bounds)
    log.warning("the clock was set back: %s mails were put off for too long", count)
    return True
