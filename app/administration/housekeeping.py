"""The periodic background cleanup, run by one process across all instances."""

import logging
import threading
from collections.abc import Callable
from contextlib import suppress

from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError

from app.administration import service
from app.core.database.database import reason_of
from app.core.errors import AppError
from app.core.runtime import Runtime
from app.core.tokens import random_fraction
from app.settings import keys

log = logging.getLogger(__name__)

CLEANUP_LOCK_KEY = "gatehouse:cleanup_turn"
POLL_SECONDS = 30.0
RETRY_MS = 120_000
TRANSIENT_ERRORS = (RedisError, SQLAlchemyError, AppError)
STOP_SECONDS = 2.0  # a batch of deletions takes less


def start(rt: Runtime) -> Callable[[], None]:
    """Start the background cleanup; return a function that stops it."""
    stopped = threading.Event()

    def run() -> None:
        # Random polling doubles as jitter: a run starts up to POLL_SECONDS after it is due.
        while not stopped.wait(POLL_SECONDS * (1 + random_fraction()) / 2):
            try:
                run_if_due(rt)
            except Exception:
                log.exception("cleaning up failed")  # nothing restarts this thread

    thread = threading.Thread(target=run, name="housekeeping", daemon=True)
    thread.start()

    def stop() -> None:
        stopped.set()
        thread.join(timeout=STOP_SECONDS)

    return stop


def run_if_due(rt: Runtime) -> bool:
    """Clean up unless a process did so within `maintenance_cleanup_interval_secs`; return whether.

    The lock is a Redis key that is never released: it expires when the next run is due, sooner if
    this one fails. Without Redis no process cleans up, which merely delays the deletions.
    """
    try:
        interval_ms = 1000 * rt.settings.get(keys.CLEANUP_INTERVAL_SECONDS)
        if not rt.redis.client.set(CLEANUP_LOCK_KEY, "taken", nx=True, px=interval_ms):
            return False
    except TRANSIENT_ERRORS as error:
        log.warning("cleaning up was put off: %s", reason_of(error))
        return False
    try:
        cleaned = service.cleanup(rt)
    except Exception as error:
        with suppress(RedisError):
            rt.redis.client.set(CLEANUP_LOCK_KEY, "failed", px=min(interval_ms, RETRY_MS))
        if not isinstance(error, TRANSIENT_ERRORS):
            raise
        log.warning("cleaning up was put off: %s", reason_of(error))
        return False
    log.info("deleted %s", cleaned)
    return True
