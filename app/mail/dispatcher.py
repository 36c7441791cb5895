"""Sends what is in the outbox, in the background of every serving process.

Invariant: a mail is sent only under a lease that one sender holds, and only that lease marks it.
So it leaves once, and once more at most when its sender died between sending and marking.
"""

import collections
import json
import logging
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from prometheus_client import Counter
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from app.audit.models import Action
from app.core.errors import DatabaseUnavailable
from app.core.runtime import Runtime
from app.core.smtp_errors import Undeliverable
from app.core.tokens import random_uuid
from app.mail import delivery, queries, service
from app.mail.delivery import Carrier, Outgoing
from app.mail.models import MailStatus
from app.mail.rendering import render
from app.mail.templates import DESCRIPTIONS, Template
from app.settings import keys

log = logging.getLogger(__name__)

LEASE = timedelta(seconds=60)  # longer than any attempt lasts, see core.mailer.Patience
BACK_OFF_SECONDS = (5, 15, 60, 300, 900)
MOST_ATTEMPTS = len(BACK_OFF_SECONDS) + 1
STOP_SECONDS = 2.0
LONGEST_STEP_SECONDS = 5.0
BUSY_SECONDS = 0.0005  # about one request
YIELD_FACTOR = 4.0
MOST_YIELD_SECONDS = 0.1
MARK_TRIES = 5
MARK_PAUSE_SECONDS = 1.0
DATABASE_AWAY = (SQLAlchemyError, DatabaseUnavailable)

MAILS = Counter("mails_total", "Mails that were sent, or given up.", ["outcome"])


@dataclass(frozen=True)
class Outcome:
    """How an attempt ended; `error` is None for a mail that was sent."""

    status: MailStatus
    error: str | None = None
    is_servers_fault: bool = False


def start(rt: Runtime) -> Callable[[], None]:
    """Send mails in the background from now on; return how to stop.

    The stop lets the mail in hand finish for a moment; another process takes over after its lease.
    """
    stopped = threading.Event()
    thread = threading.Thread(target=_run, args=(rt, stopped), name="mail dispatcher", daemon=True)
    thread.start()

    def stop() -> None:
        stopped.set()
        rt.mailer.due.set()
        thread.join(timeout=STOP_SECONDS)

    return stop


def drain(
    rt: Runtime,
    *,
    due: datetime | None = None,
    is_stopped: Callable[[], bool] = lambda: False,
) -> collections.Counter[MailStatus]:
    """Send every mail that is due, or was at the moment `due`; count what became of them.

    Ends early when the server itself fails, which is the same for all of them: one mail has then
    spent an attempt to find out, not each.
    """
    counts: collections.Counter[MailStatus] = collections.Counter()
    with closing(Sender(rt)) as sender:
        while not is_stopped():
            outcome = sender.send_next(due or rt.clock.now())
            if outcome is None:
                break
            counts[outcome.status] += 1
            if outcome.is_servers_fault:
                break
            _let_requests_go_first(rt)
    return counts


def _let_requests_go_first(rt: Runtime) -> None:
    """Let everything run that is waiting; the longer that takes, the longer mail stands back."""
    began = rt.clock.monotonic()
    rt.clock.sleep(0)
    taken = rt.clock.monotonic() - began
    if taken > BUSY_SECONDS:
        rt.clock.sleep(min(YIELD_FACTOR * taken, MOST_YIELD_SECONDS))


class Sender:
    """Sends mails one by one."""

    def __init__(self, rt: Runtime) -> None:
        self._rt = rt
        self._carrier = Carrier(rt)

    def send_next(self, due: datetime) -> Outcome | None:
        """Send one mail that was due at a moment; None when there is none."""
        now, lease = self._rt.clock.now(), random_uuid()
        with self._rt.transaction() as session:
            row = queries.claim(session, lease, due=due, until=now + LEASE)
        if row is None:
            return None
        mail, outcome = self._attempt(row)
        self._mark(row, lease, mail, outcome)
        return outcome

    def close(self) -> None:
        """Hang up."""
        self._carrier.close()

    def _attempt(self, row: Any) -> tuple[Outgoing | None, Outcome]:
        mail = None
        if row.attempts > MOST_ATTEMPTS:
            # Whoever made the last one died at it.
            return mail, Outcome(MailStatus.FAILED, "the last attempt was never finished")
        try:
            mail = _outgoing(self._rt, row)
            self._carrier.take(mail)
        except Undeliverable as error:
            outcome = Outcome(_status_after(row.attempts), error.reason, error.is_servers_fault)
            if error.is_final:
                outcome = replace(outcome, status=MailStatus.FAILED)
            log.warning("mail %s to %s did not leave: %s", row.id, row.recipient, error.reason)
            return mail, outcome
        except DATABASE_AWAY:
            raise
        except Exception as error:
            # One mail that cannot be made must not stop all others.
            log.exception("mail %s could not be made", row.id)
            reason = f"the mail could not be made ({type(error).__name__})"
            return mail, Outcome(_status_after(row.attempts), reason)
        return mail, Outcome(MailStatus.SENT)

    def _mark(self, row: Any, lease: str, mail: Outgoing | None, outcome: Outcome) -> None:
        """Write down how it went, patiently: what was sent and not marked would be sent again."""
        for tries_left in reversed(range(MARK_TRIES)):
            try:
                return _settle(self._rt, row, lease, mail, outcome)
            except DATABASE_AWAY:
                if not tries_left:
                    raise
                self._rt.clock.sleep(MARK_PAUSE_SECONDS)
        return None


def _outgoing(rt: Runtime, row: Any) -> Outgoing:
    template = Template(row.template)
    values = json.loads(rt.secret_box.open(row.payload, service.sealed_for(row.id)))
    return Outgoing(
        mail_id=row.id,
        kind=template,
        recipient=row.recipient,
        rendered=render(rt, template, values),
        username=values.get("username", ""),
        names_recipient=DESCRIPTIONS[template].names_recipient,
    )


def _status_after(attempts: int) -> MailStatus:
    return MailStatus.QUEUED if attempts < MOST_ATTEMPTS else MailStatus.FAILED


def _settle(rt: Runtime, row: Any, lease: str, mail: Outgoing | None, outcome: Outcome) -> None:
    now, attempts = rt.clock.now(), min(row.attempts, MOST_ATTEMPTS)
    ending: dict[str, Any] = {"payload": None, "finished_at": now, "due_at": now}
    if outcome.status is MailStatus.QUEUED:
        ending = {"due_at": now + timedelta(seconds=BACK_OFF_SECONDS[attempts - 1])}
    with rt.transaction() as session:
        is_ours = queries.settle(
            session,
            row.id,
            lease,
            status=outcome.status,
            attempts=attempts,
            last_error=outcome.error,
            **ending,
        )
        if is_ours and outcome.status is not MailStatus.QUEUED:
            _record(rt, session, row, mail, outcome)
    if not is_ours:
        log.warning("mail %s took longer than its lease; another sender has it now", row.id)
    elif outcome.status is not MailStatus.QUEUED:
        MAILS.labels(outcome.status).inc()


def _record(
    rt: Runtime, session: Session, row: Any, mail: Outgoing | None, outcome: Outcome
) -> None:
    if outcome.status is MailStatus.SENT:
        delivery.record(rt, session, Action.MAIL_SEND, row.recipient, row.template, mail)
        return
    action = Action.MAIL_DELIVERY_FAILED
    delivery.record(rt, session, action, row.recipient, row.template, mail, error=outcome.error)


def _run(rt: Runtime, stopped: threading.Event) -> None:
    is_troubled = False
    while True:
        rt.mailer.due.clear()
        if stopped.is_set():  # looked at after the clearing, which may have cleared the stop's call
            return
        try:
            _send_what_is_due(rt, stopped)
        except DATABASE_AWAY as error:
            if not is_troubled:
                log.warning("mails wait: the database does not answer: %s", error)
            is_troubled = True
        except Exception:
            # This thread is never started again.
            log.exception("mails wait: sending them failed")
        else:
            is_troubled = False
        _wait(rt)


def _wait(rt: Runtime) -> None:
    """Wait for the next look, or for a mail of this process.

    In steps, since the distance may be changed meanwhile.
    """
    waited = 0.0
    while (left := _interval(rt) - waited) > 0:
        step = min(left, LONGEST_STEP_SECONDS)
        if rt.mailer.due.wait(step):
            return
        waited += step


def _interval(rt: Runtime) -> float:
    try:
        return rt.settings.get(keys.MAIL_DISPATCH_INTERVAL_SECONDS)
    except DATABASE_AWAY:
        return keys.MAIL_DISPATCH_INTERVAL_SECONDS.default


def _send_what_is_due(rt: Runtime, stopped: threading.Event) -> None:
    with rt.reading() as connection:
        if not queries.is_any_due(connection, rt.clock.now()):
            return  # without having kept other writers waiting
    drain(rt, is_stopped=stopped.is_set)
