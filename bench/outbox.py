"""Fills a service's outbox: `python -m bench.outbox COUNT`, run with the service's environment."""

import sys
from datetime import timedelta

from sqlalchemy import update

from bench import accounts
from bench.api import email
from bench.servers import Service

BATCH = 1000
POSTPONED = timedelta(days=1)


def fill(service: Service, count: int) -> None:
    """Queue activation mails that are due tomorrow."""
    service.python("-m", "bench.outbox", str(count))
    _tidy(service)


def make_due(service: Service) -> None:
    """Make every mail due; the workers look every few seconds."""
    with accounts.database(service) as (cursor, _):
        cursor.execute("UPDATE mail_outbox SET due_at = created_at WHERE status = 'queued'")
    _tidy(service)


def clear(service: Service) -> None:
    """Forget all mails, sent and not."""
    with accounts.database(service) as (cursor, _):
        cursor.execute("DELETE FROM mail_outbox")
    _tidy(service)


def _tidy(service: Service) -> None:
    """Leave nothing for autovacuum and checkpoints to do within a measured run."""
    if service.postgres:
        with accounts.database(service) as (cursor, _):
            cursor.execute("VACUUM ANALYZE mail_outbox")
            cursor.execute("CHECKPOINT")


def main() -> None:
    """Queue as the service itself does, sealed payloads included."""
    # Only here: importing it builds an application from the environment.
    from app.mail import service as mail
    from app.mail.models import OutboxMail
    from app.mail.templates import Template
    from wsgi import app

    rt, numbers = app.extensions["gatehouse"], range(int(sys.argv[1]))
    later = rt.clock.now() + POSTPONED
    with app.app_context():
        for start in numbers[::BATCH]:
            with rt.transaction() as session:
                for name in (f"new{n}" for n in numbers[start : start + BATCH]):
                    stored = {"username": name, "token": f"cv_{name:0>43}"}
                    mail.queue(rt, session, Template.REGISTER_ACTIVATION, email(name), **stored)
                session.flush()
                is_new = OutboxMail.due_at < later
                session.execute(update(OutboxMail).where(is_new).values(due_at=later))


if __name__ == "__main__":
    main()
