"""Deletes what has expired, when an operator asks for it and in the background."""

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from redis import Redis
from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError

from app.access_tokens import service as access_tokens
from app.audit import hourly
from app.audit import service as audit
from app.audit.models import EntityType
from app.avatars import upkeep as avatars_upkeep
from app.browsers import service as browsers
from app.contact_verification import tokens as contact_tokens
from app.core.access import Operator
from app.core.errors import AppError
from app.core.runtime import Runtime
from app.core.texts import pluralized
from app.crypto.tokens import random_fraction
from app.external_auth.providers import service as external_auth
from app.installation import health
from app.mail import service as mail
from app.own_data import erasure
from app.registration import service as registration
from app.sessions import revocation as sessions
from app.settings import keys
from app.store.database import reason_of
from app.teams import service as teams
from app.users import service as users

log = logging.getLogger(__name__)


# What expires, and the words for one and for several. Avatars come last: the file system may fail
# although the database works.
CLEANUPS: dict[str, tuple[Callable[[Runtime], int], str, str]] = {
    "sessions": (sessions.delete_expired, "expired session", "expired sessions"),
    "unactivated_accounts": (
        registration.delete_abandoned,
        "account that nobody activated",
        "accounts that nobody activated",
    ),
    "browsers": (browsers.delete_unused, "unused browser", "unused browsers"),
    "access_tokens": (
        access_tokens.delete_expired,
        "expired access token",
        "expired access tokens",
    ),
    "mail_tokens": (contact_tokens.delete_expired, "expired mail link", "expired mail links"),
    "pending_identities": (
        external_auth.delete_expired,
        "expired external identity",
        "expired external identities",
    ),
    "mails": (mail.delete_finished, "finished mail", "finished mails"),
    "teams": (teams.delete_archived, "archived team", "archived teams"),
    "erased_accounts": (
        erasure.scrub,
        "audit entry of a deleted account",
        "audit entries of deleted accounts",
    ),
    "audit_entries": (audit.delete_outdated, "outdated audit entry", "outdated audit entries"),
    "avatar_leftovers": (avatars_upkeep.cleanup, "leftover of avatars", "leftovers of avatars"),
}

CLEANUP_LOCK_KEY = "gatehouse:cleanup_turn"
POLL_SECONDS = 30.0
RETRY_MS = 120_000
TRANSIENT_ERRORS = (RedisError, SQLAlchemyError, AppError)
STOP_SECONDS = 2.0  # a batch of deletions takes less


def cleanup(rt: Runtime) -> dict[str, int]:
    """Delete what has expired; idempotent, and safe beside concurrent runs."""
    hourly.count_finished_hours(rt)
    users.renew_hash_kinds(rt)
    return {name: delete(rt) for name, (delete, *_) in CLEANUPS.items()}


def clean_up_now(rt: Runtime, by: Operator) -> dict[str, int]:
    """Do `cleanup` because an operator asks for it."""
    with rt.transaction() as session:
        by.recheck(session)
    cleaned = cleanup(rt)
    with rt.transaction() as session:
        audit.record_action(
            rt, session, by, EntityType.SYSTEM_CONFIG, "maintenance", "cleanup", **cleaned
        )
    return cleaned


def in_words(cleaned: dict[str, int]) -> str:
    """Return what `cleanup` deleted, for the log and the terminal."""
    return ", ".join(pluralized(count, *CLEANUPS[name][1:]) for name, count in cleaned.items())


def start_cleanup(rt: Runtime) -> Callable[[], None]:
    """Start the background cleanup; return a function that stops it."""
    stopped = threading.Event()

    def run() -> None:
        # Random polling doubles as jitter: a run starts up to POLL_SECONDS after it is due.
        while not stopped.wait(POLL_SECONDS * (1 + random_fraction()) / 2):
            try:
                health.examine(rt)
                clean_up_if_due(rt)
            except Exception:
                log.exception("clean-up failed")  # nothing restarts this thread

    thread = threading.Thread(target=run, name="housekeeping", daemon=True)
    thread.start()

    def stop() -> None:
        stopped.set()
        thread.join(timeout=STOP_SECONDS)

    return stop


def clean_up_if_due(rt: Runtime) -> bool:
    """Clean up unless a process did so within `maintenance_cleanup_interval_secs`; return whether.

    The lock is a Redis key that is never released: it expires when the next run is due, sooner if
    this one fails. Without Redis no process cleans up, which merely delays the deletions.
    """
    try:
        interval_ms = 1000 * rt.settings.get(keys.CLEANUP_INTERVAL_SECONDS)
        if not _takes_turn(rt.redis.client, interval_ms):
            return False
    except TRANSIENT_ERRORS as error:
        log.warning("clean-up was postponed: %s", reason_of(error))
        return False
    try:
        cleaned = cleanup(rt)
    except Exception as error:
        with suppress(RedisError):
            rt.redis.client.set(CLEANUP_LOCK_KEY, "failed", px=min(interval_ms, RETRY_MS))
        if not isinstance(error, TRANSIENT_ERRORS):
            raise
        log.warning("clean-up was postponed: %s", reason_of(error))
        return False
    log.info("deleted %s", in_words(cleaned))
    return True


def _takes_turn(redis: Redis, interval_ms: int) -> bool:
    """Return whether this process is to clean up.

    A turn that lasts longer than any was taken while the clock of Redis was ahead.
    """
    if redis.set(CLEANUP_LOCK_KEY, "taken", nx=True, px=interval_ms):
        return True
    left: Any = redis.pttl(CLEANUP_LOCK_KEY)
    is_of_a_clock_ahead = left > interval_ms
    if is_of_a_clock_ahead:
        redis.set(CLEANUP_LOCK_KEY, "taken", px=interval_ms)
    return bool(is_of_a_clock_ahead)
