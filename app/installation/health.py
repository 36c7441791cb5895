"""The state of the service's parts, as the last round of housekeeping found it.

A round leaves what it found in Redis for the overview, which must not wait for a part that hangs.
"""

import json
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from redis.exceptions import RedisError

from app.core.errors import AppError
from app.core.runtime import Runtime
from app.core.texts import Sentence
from app.mail import service as mail
from app.store import redis as redis_client
from app.store.database import DATABASE_ERRORS, reason_of
from app.web.schema import timestamp

KEY = "gatehouse:health"
KEPT_MS = 600_000
# A mail that has been due for longer waits for something that does not go away by itself.
LATE_SECONDS = 300.0
# From the best to the worst.
STATUSES = ("healthy", "degraded", "unhealthy")
UNKNOWN: dict[str, Any] = {
    "status": "unknown",
    "summary": "No round of housekeeping has looked yet.",
    "components": [],
    "checked_at": None,
}


@dataclass(frozen=True)
class Component:
    """One part, its status, and a sentence on it."""

    name: str
    status: str
    sentence: Sentence

    def shown(self) -> dict[str, Any]:
        """Return it as it is kept and shown."""
        return {
            "name": self.name,
            "status": self.status,
            "message": str(self.sentence),
            "sentences": [vars(self.sentence)],
        }


def examine(rt: Runtime) -> None:
    """Look at every part and keep what was found; while Redis is away, nothing is kept."""
    components = [_database(rt), _cache(rt), _mail(rt)]
    worst = max(components, key=lambda component: STATUSES.index(component.status))
    is_well = worst.status == STATUSES[0]
    found = {
        "status": worst.status,
        "summary": "Everything works." if is_well else f"{worst.name}: {worst.sentence}",
        "components": [component.shown() for component in components],
        "checked_at": timestamp(rt.clock.now()),
    }
    with suppress(RedisError):
        rt.redis.client.set(KEY, json.dumps(found), px=KEPT_MS)


def last_found(rt: Runtime) -> dict[str, Any]:
    """Return what the last round found; UNKNOWN if none has, or Redis does not answer."""
    try:
        kept: Any = rt.redis.fail_fast.call(lambda redis: redis.get(KEY))
    except RedisError:
        return {**UNKNOWN, "summary": "Redis, where it is kept, does not answer."}
    return json.loads(kept) if kept else UNKNOWN


def _database(rt: Runtime) -> Component:
    try:
        with rt.reading() as session:
            rt.database.schema.require_current(session)
            rt.database.require_writable(session)
    except DATABASE_ERRORS as error:
        message = error.public_message if isinstance(error, AppError) else reason_of(error)
        return Component("database", "unhealthy", Sentence(message))
    return Component("database", "healthy", Sentence("It answers and takes changes."))


def _cache(rt: Runtime) -> Component:
    try:
        redis_client.require_writable(rt.redis.client)
    except RedisError as error:
        return Component("cache", "unhealthy", Sentence(reason_of(error)))
    return Component("cache", "healthy", Sentence("It answers and takes changes."))


def _mail(rt: Runtime) -> Component:
    try:
        with rt.reading() as session:
            outbox = mail.outbox(rt, session)
        is_by_smtp = mail.is_smtp_configured(rt)
    except DATABASE_ERRORS:
        return Component("mail", "degraded", Sentence("The outbox cannot be read."))
    if outbox.oldest_seconds > LATE_SECONDS:
        minutes = int(outbox.oldest_seconds // 60)
        late = Sentence("A mail has been waiting for {minutes} minutes.", minutes=minutes)
        return Component("mail", "degraded", late)
    way = "Mails leave by SMTP." if is_by_smtp else "No SMTP server is set: mails become files."
    return Component("mail", "healthy", Sentence(way))
