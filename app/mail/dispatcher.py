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
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from app.audit import service as audit
from app.core.database.database import DATABASE_ERRORS, reason_of
from app.core.logs import Outage
from app.core.mailer import Undeliverable
from app.core.runtime import Runtime
from app.core.secret_box import SecretUnreadable
from app.core.tokens import random_uuid
from app.mail import delivery, queries
from app.mail.delivery import Content, ReadyMail, Transport
from app.mail.models import MailStatus, OutboxMail
from app.mail.rendering import rounded_duration
from app.mail.templates import Template
from app.settings import keys

log = logging.getLogger(__name__)

LEASE = timedelta(seconds=60)  # longer than any attempt, see core.mailer.Timeouts
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

BACK_OFF = tuple(timedelta(seconds=seconds) for seconds in (5, 15, 60, 300, 900))
MAX_ATTEMPTS = len(BACK_OFF) + 1
# During an outage of server or key, a mail backs off for as long as it has waited, within bounds.
MIN_PAUSE = timedelta(seconds=5)
MAX_PAUSE_FOR_SERVER = timedelta(minutes=1)
# Longer, because each poll retries every mail without a key, but only one or two while the server
# is down.
MAX_PAUSE_FOR_KEY = timedelta(minutes=5)
MAX_OUTAGE = timedelta(days=3)  # a weekend
NO_KEY = "no key decrypts it"

# By status: the latest due time that a lease or a back-off may have, from now, and the one that a
# mail gets which is due later than that. A lease is given its usual time, as its holder may be
# alive.
LATEST_DUE = (
    (MailStatus.SENDING, LEASE + TOLERANCE, LEASE),
    (MailStatus.QUEUED, BACK_OFF[-1] + TOLERANCE, timedelta(0)),
)


@dataclass(frozen=True)
class Outcome:
    """How an attempt ended; `error` is None for a mail that was sent.

    A queued mail is retried after `pause`. `counts` is False if the attempt uses up no try.
    `failure` is what the server did, if it was asked.
    """

    status: MailStatus
    error: str | None = None
    pause: timedelta = timedelta(0)
    counts: bool = True
    failure: Undeliverable | None = None


def _after_try(error: str, attempts: int) -> Outcome:
    if attempts >= MAX_ATTEMPTS:
        return Outcome(MailStatus.FAILED, error)
    return Outcome(MailStatus.QUEUED, error, BACK_OFF[attempts - 1])


def _in_outage(error: str, waited: timedelta, max_pause: timedelta) -> Outcome:
    if waited >= MAX_OUTAGE:
        return Outcome(MailStatus.FAILED, error, counts=False)
    pause = min(max(waited, MIN_PAUSE), max_pause)
    return Outcome(MailStatus.QUEUED, error, pause, counts=False)


def _after_failure(failure: Undeliverable, attempts: int, waited: timedelta) -> Outcome:
    """Return the outcome of a failed attempt at a mail that has `waited` since it was queued.

    If the server may have the mail, the attempt counts regardless: a retry may deliver it twice.
    """
    if failure.is_server_failure and not failure.may_have_arrived:
        outcome = _in_outage(failure.reason, waited, MAX_PAUSE_FOR_SERVER)
    elif failure.is_final:
        outcome = Outcome(MailStatus.FAILED, failure.reason)
    else:
        outcome = _after_try(failure.reason, attempts)
    return replace(outcome, failure=failure)


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
    with closing(Transport(rt)) as transport:
        return _drain(rt, transport, due, lambda: False)


def _drain(
    rt: Runtime, transport: Transport, due: datetime | None, is_stopped: Callable[[], bool]
) -> DrainResult:
    drained = DrainResult()
    if not _is_any_due(rt, due or rt.clock.now()):
        return drained  # without taking a write lock
    failed_at = None
    while not is_stopped():
        tried = _send_next(rt, transport, due or rt.clock.now(), exclude_recipient=failed_at)
        if tried is None:
            break
        recipient, outcome = tried
        drained.counts[outcome.status] += 1
        if outcome.failure is not None and outcome.failure.is_server_failure:
            drained.server_error = outcome.error
            if failed_at is not None or not outcome.failure.may_be_mail_specific:
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


def _send_next(
    rt: Runtime, transport: Transport, due: datetime, *, exclude_recipient: str | None
) -> tuple[str, Outcome] | None:
    """Send one mail that is due at the time `due`; return its recipient and the outcome.

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
    for tries_left in reversed(range(MARK_TRIES)):
        try:
            _settle(rt, row, mail, outcome)
        except DATABASE_ERRORS:
            if not tries_left:
                raise
            rt.clock.sleep(MARK_PAUSE_SECONDS)  # a mail sent but not recorded is sent again
        else:
            break
    return row.recipient, outcome


def _attempt(
    rt: Runtime, transport: Transport, row: OutboxMail
) -> tuple[ReadyMail | None, Outcome]:
    mail, waited = None, rt.clock.now() - row.created_at
    if row.attempts > MAX_ATTEMPTS:
        # The last attempt has no outcome, so its sender died during it.
        return mail, _after_try("the last attempt was never finished", row.attempts)
    try:
        stored = delivery.unseal(rt.secret_box, row)
        mail = _ready_mail(rt, row, stored)
        if stored.expires_at is not None and stored.expires_at <= rt.clock.now():
            log.warning("mail %s to %s does not leave: %s", row.id, row.recipient, EXPIRED)
            return mail, Outcome(MailStatus.FAILED, EXPIRED, counts=False)
        transport.send(mail)
    except Undeliverable as failure:
        log.warning("mail %s to %s did not leave: %s", row.id, row.recipient, failure.reason)
        return mail, _after_failure(failure, row.attempts, waited)
    except SecretUnreadable:
        log.warning(
            "mail %s to %s does not leave: %s, see `flask doctor`", row.id, row.recipient, NO_KEY
        )
        return mail, _in_outage(NO_KEY, waited, MAX_PAUSE_FOR_KEY)
    except DATABASE_ERRORS:
        raise
    except Exception as error:
        # One mail that cannot be rendered must not stop all others.
        log.exception("mail %s could not be rendered", row.id)
        reason = f"the mail could not be rendered ({type(error).__name__})"
        return mail, _after_try(reason, row.attempts)
    return mail, Outcome(MailStatus.SENT)


def _ready_mail(rt: Runtime, row: OutboxMail, stored: Content) -> ReadyMail:
    values, now = stored.values, rt.clock.now()
    if stored.expires_at is not None and now - row.created_at > LIFETIME_REFRESH_AFTER:
        # The stored text states the lifetime that was left when the mail was queued.
        left = max(0, int((stored.expires_at - now).total_seconds()))
        values = {**values, "expires_in": rounded_duration(left)}
    return delivery.ready_mail(rt, row.id, Template(row.template), row.recipient, values)


def _settle(rt: Runtime, leased: OutboxMail, mail: ReadyMail | None, outcome: Outcome) -> None:
    now, attempts = rt.clock.now(), leased.attempts if outcome.counts else leased.attempts - 1
    is_finished = outcome.status is not MailStatus.QUEUED
    with rt.transaction() as session:
        row = queries.find_leased(session, leased)
        if row is None:
            log.warning("mail %s took longer than its lease; another sender has it now", leased.id)
            return
        row.status, row.last_error, row.lease = outcome.status, outcome.error, None
        row.attempts = min(attempts, MAX_ATTEMPTS)
        # Of a finished mail as well, so that `delete_finished` can use the index.
        row.due_at = now + outcome.pause
        if is_finished:
            row.payload, row.finished_at = None, now
            event = delivery.event(row.recipient, row.template, mail, outcome.error)
            audit.record(rt, session, event)
    if is_finished:
        delivery.MAILS.labels(outcome.status).inc()


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
        return rt.settings.get(keys.MAIL_DISPATCH_INTERVAL_SECONDS)
    except DATABASE_ERRORS:
        return keys.MAIL_DISPATCH_INTERVAL_SECONDS.default


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
