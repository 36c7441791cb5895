"""The server's own round of cleaning up, done by one process of all instances (spec 04 §8.5)."""

import logging
import threading
from collections.abc import Callable
from contextlib import suppress

from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError

from app.administration import service
from app.core.database.failures import reason_of
from app.core.errors import AppError
from app.core.runtime import Runtime
from app.core.tokens import random_fraction
from app.settings import keys

log = logging.getLogger(__name__)

TURN = "gatehouse:cleanup_turn"
POLL_SECONDS = 30.0
RETRY_MS = 120_000
AWAY = (RedisError, SQLAlchemyError, AppError)
STOP_SECONDS = 2.0  # a batch of deletions takes less


def start(rt: Runtime) -> Callable[[], None]:
    """Clean up in the background from now on; return how to stop."""
    stopped = threading.Event()

    def run() -> None:
        # Polling is the jitter: a turn begins up to POLL_SECONDS after it may.
        while not stopped.wait(POLL_SECONDS * (1 + random_fraction()) / 2):
            try:
                take_turn(rt)
            except Exception:
                log.exception("cleaning up failed")  # this thread is never started again

    thread = threading.Thread(target=run, name="housekeeping", daemon=True)
    thread.start()

    def stop() -> None:
        stopped.set()
        thread.join(timeout=STOP_SECONDS)

    return stop


def take_turn(rt: Runtime) -> bool:
    """Clean up, unless some process did within `maintenance_cleanup_interval_secs`; tell whether.

    The turn is a key that nobody gives back: it expires when the next one may begin, soon when
    this one fails. Without Redis nobody cleans up, which only keeps the waste a little longer.
    """
    try:
        interval_ms = 1000 * rt.settings.get(keys.CLEANUP_INTERVAL_SECONDS)
        if not rt.redis.set(TURN, "taken", nx=True, px=interval_ms):
            return False
    except AWAY as error:
        log.warning("cleaning up was put off: %s", reason_of(error))
        return False
    try:
        cleaned = service.cleanup(rt)
    except Exception as error:
        with suppress(RedisError):
            rt.redis.set(TURN, "failed", px=min(interval_ms, RETRY_MS))
        if not isinstance(error, AWAY):
            raise
        log.warning("cleaning up was put off: %s", reason_of(error))
        return False
    log.info("deleted %s", cleaned)
    return True
