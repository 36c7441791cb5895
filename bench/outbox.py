"""Fills a service's outbox: `python -m bench.outbox COUNT`, run with the service's environment."""

import os
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from time import monotonic, sleep

from app.core.clock import SystemClock
from bench import accounts
from bench.api import Unexpected, email
from bench.servers import Service

BATCH = 100
# A mail due later than this is taken as a sign that the clock was set back.
POSTPONED = timedelta(minutes=10)
FIRST_MAIL_SECONDS = 60
LOWEST_PRIORITY = 19


class ClockAhead(SystemClock):
    """A clock that is ahead, so that mails queued by it are not due yet."""

    def now(self) -> datetime:
        """Return the time in ten minutes."""
        return super().now() + POSTPONED


def fill(service: Service, count: int) -> None:
    """Queue activation mails that are due in ten minutes."""
    service.python("-m", "bench.outbox", str(count))
    _tidy(service)


@contextmanager
def being_filled(service: Service, count: int) -> Iterator["Future[str]"]:
    """Run `fill` concurrently with the block, which is entered once there is a mail."""
    with ThreadPoolExecutor(1) as pool:
        filling = pool.submit(service.python, "-m", "bench.outbox", str(count))
        end = monotonic() + FIRST_MAIL_SECONDS
        while not length(service):
            if filling.done() or monotonic() > end:
                raise Unexpected("no mail is queued")
            sleep(0.05)
        yield filling
        filling.result()
    _tidy(service)


def length(service: Service) -> int:
    """Return how many mails there are, sent or not."""
    with accounts.database(service) as (cursor, _):
        cursor.execute("SELECT count(*) FROM mail_outbox")
        return int(cursor.fetchone()[0])


def make_due(service: Service) -> None:
    """Make every queued mail due; the workers poll every few seconds."""
    with accounts.database(service) as (cursor, _):
        past = "(SELECT min(created_at) FROM users)"
        cursor.execute(f"UPDATE mail_outbox SET due_at = {past} WHERE status = 'queued'")
    _tidy(service)


def clear(service: Service) -> None:
    """Delete all mails, sent or not."""
    with accounts.database(service) as (cursor, _):
        cursor.execute("DELETE FROM mail_outbox")
    _tidy(service)


def _tidy(service: Service) -> None:
    """Leave nothing for autovacuum and checkpoints to do during a measured run."""
    if service.postgres:
        with accounts.database(service) as (cursor, _):
            cursor.execute("VACUUM ANALYZE mail_outbox")
            cursor.execute("CHECKPOINT")


def _lower_priority() -> None:
    """Take the lowest CPU priority.

    With Linux's autogrouping the CPU is shared between sessions first, and each has its own nice
    value.
    """
    os.setsid()
    os.nice(LOWEST_PRIORITY)
    with suppress(FileNotFoundError):
        Path("/proc/self/autogroup").write_text(str(LOWEST_PRIORITY), encoding="ascii")


def main() -> None:
    """Queue mails as the service does, sealed payloads included, but at the lowest priority."""
    _lower_priority()
    # Imported late, because importing wsgi builds an application from the environment.
    from app.mail import service as mail
    from app.mail.templates import Template
    from wsgi import app

    rt, numbers = replace(app.extensions["gatehouse"], clock=ClockAhead()), range(int(sys.argv[1]))
    with app.app_context():
        for start in numbers[::BATCH]:
            with rt.transaction() as session:
                for name in (f"new{n}" for n in numbers[start : start + BATCH]):
                    stored = {"username": name, "token": f"cv_{name:0>43}", "expires_in": "1 day"}
                    mail.queue(rt, session, Template.REGISTER_ACTIVATION, email(name), **stored)


if __name__ == "__main__":
    main()
