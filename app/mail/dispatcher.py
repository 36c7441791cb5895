"""Sends the mails in the outbox, in the background of every serving process.

Invariant: a mail is sent only under a lease, and only the lease's holder records the outcome. So it
is sent once; again only if its sender died between sending and recording, or could not reach the
database to record the outcome before the lease expired.

A mail is given up after six attempts. A failure of the server before it had the mail does not
count, nor does a missing decryption key: an outage of either, up to three days, loses no mail
except those whose content expires meanwhile.
"""

import collections
import logging
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from app.audit import service as audit
from app.core.database.database import DATABASE_ERRORS, reason_of
from app.core.logs import Outage
from app.core.mailer import Undeliverable
from app.core.runtime import Runtime
from app.core.secret_box import SecretUnreadable
from app.core.tokens import random_uuid
from app.mail import delivery, queries
from app.mail.delivery import Content, ReadyMail, Transport
from app.mail.models import MailStatus
from app.mail.queries import Leased
from app.mail.rendering import rounded_duration
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

BACK_OFF_SECONDS = (5, 15, 60, 300, 900)
MAX_ATTEMPTS = len(BACK_OFF_SECONDS) + 1
# During an outage of server or key, a mail backs off for as long as it has waited, within bounds.
MIN_PAUSE_SECONDS = 5.0
MAX_PAUSE_FOR_SERVER_SECONDS = 60.0
# Longer, because each poll retries every mail without a key, but only one or two while the server
# is down.
MAX_PAUSE_FOR_KEY_SECONDS = 300.0
MAX_OUTAGE = timedelta(days=3)  # a weekend
NO_KEY = "no key opens it, see `flask doctor`"
MAX_PAUSE = timedelta(seconds=BACK_OFF_SECONDS[-1])


@dataclass(frozen=True)
class Outcome:
    """How an attempt ended; `error` is None for a mail that was sent.

    `counts` is False if the attempt uses up no try. `may_be_mail_specific`: the failure may be
    specific to this mail; only trying another one can tell.
    """

    status: MailStatus
    error: str | None = None
    is_server_failure: bool = False
    may_be_mail_specific: bool = False
    counts: bool = True


def after_failure(error: Undeliverable, attempts: int, waited: timedelta) -> Outcome:
    """Return the outcome of a failed attempt at a mail that has `waited` since it was queued.

    If the server may have the mail, the attempt counts regardless: a retry may deliver it twice.
    """
    blame = error.is_server_failure, error.is_server_failure and error.may_be_mail_specific
    if error.is_server_failure and not error.may_have_arrived:
        return Outcome(_status_in_outage(waited), error.reason, *blame, counts=False)
    status = MailStatus.FAILED if error.is_final else status_after(attempts)
    return Outcome(status, error.reason, *blame)


def without_key(waited: timedelta) -> Outcome:
    """Return the outcome for a mail, `waited` since it was queued, that no key decrypts now."""
    return Outcome(_status_in_outage(waited), NO_KEY, counts=False)


def _status_in_outage(waited: timedelta) -> MailStatus:
    return MailStatus.FAILED if waited >= MAX_OUTAGE else MailStatus.QUEUED


def status_after(attempts: int) -> MailStatus:
    """Return the status after a failed attempt: queued for a retry, or failed for good."""
    return MailStatus.QUEUED if attempts < MAX_ATTEMPTS else MailStatus.FAILED


def back_off(outcome: Outcome, attempts: int, waited: timedelta) -> timedelta:
    """Return the back-off before a mail is retried."""
    if outcome.counts:
        return timedelta(seconds=BACK_OFF_SECONDS[attempts - 1])
    longest = MAX_PAUSE_FOR_KEY_SECONDS
    if outcome.is_server_failure:
        longest = MAX_PAUSE_FOR_SERVER_SECONDS
    return timedelta(seconds=min(max(waited.total_seconds(), MIN_PAUSE_SECONDS), longest))


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
        with self._rt.transaction() as session:
            row = queries.lease_next(
                session, lease, due=due, until=until, exclude_recipient=exclude_recipient
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
            stored = delivery.unseal(self._rt.secret_box, row.id, row.payload)
            mail = _ready_mail(self._rt, row, stored)
            if stored.expires_at is not None and stored.expires_at <= self._rt.clock.now():
                log.warning("mail %s to %s does not leave: %s", row.id, row.recipient, EXPIRED)
                return mail, Outcome(MailStatus.FAILED, EXPIRED, counts=False)
            self._transport.send(mail)
        except Undeliverable as error:
            log.warning("mail %s to %s did not leave: %s", row.id, row.recipient, error.reason)
            return mail, after_failure(error, row.attempts, waited)
        except SecretUnreadable:
            log.warning("mail %s to %s does not leave: %s", row.id, row.recipient, NO_KEY)
            return mail, without_key(waited)
        except DATABASE_ERRORS:
            raise
        except Exception as error:
            # One mail that cannot be rendered must not stop all others.
            log.exception("mail %s could not be made", row.id)
            reason = f"the mail could not be made ({type(error).__name__})"
            return mail, Outcome(status_after(row.attempts), reason)
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
    now, status = rt.clock.now(), outcome.status
    made = row.attempts if outcome.counts else row.attempts - 1
    columns: dict[str, Any] = {
        "status": status,
        "attempts": min(made, MAX_ATTEMPTS),
        "last_error": outcome.error,
        # Of a finished mail as well, so that `delete_finished` can use the index.
        "due_at": now,
    }
    if status is MailStatus.QUEUED:
        columns["due_at"] += back_off(outcome, row.attempts, now - row.created_at)
    else:
        columns |= {"payload": None, "finished_at": now}
    with rt.transaction() as session:
        is_ours = queries.settle(session, row.id, lease, **columns)
        if is_ours and status is not MailStatus.QUEUED:
            event = delivery.event(row.recipient, row.template, mail, outcome.error)
            audit.record(rt, session, event)
    if is_ours and status is not MailStatus.QUEUED:
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
            rt.mailer.due.clear()
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
        if rt.mailer.due.wait(step):
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
        "longest_pause": now + MAX_PAUSE + TOLERANCE,
    }
    with rt.reading() as reader:
        if not queries.is_any_stranded(reader, **bounds):
            return queries.is_any_due(reader, due)
    with rt.transaction() as session:
        count = queries.reschedule_stranded(session, lease_until=now + LEASE, now=now, **bounds)
    log.warning("the clock was set back: %s mails were put off for too long", count)
    return True
