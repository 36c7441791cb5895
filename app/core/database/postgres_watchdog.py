"""A watchdog over the waits for PostgreSQL, which take place on gevent's loop.

A server that hangs keeps its connections open, and libpq waits for a reply without a timeout: every
request would hang until the proxy gives up. A statement may be slow, though. So while one takes
long, the server is probed over new connections; if two probes in a row get no answer, all waits are
ended, and new ones are refused until the server answers again.
"""

import logging
from collections.abc import Mapping
from contextlib import closing, suppress
from typing import Any

import gevent
import psycopg2
from gevent.socket import wait_read, wait_write
from psycopg2 import extensions

from app.core.clock import Clock
from app.core.connecting import Handle
from app.core.database import postgres_addresses

log = logging.getLogger(__name__)

SILENCE_SECONDS = 3.0
ANSWER_SECONDS = 2.0
# One answer can be late because this machine stalled, which is no reason to end all waits.
QUESTIONS = 2
# With a wait callback, libpq does not apply its own connect_timeout.
CONNECT_SECONDS = 5.0
LOOK_SECONDS = 0.5


class PostgresHangs(psycopg2.OperationalError):
    """The server hangs; another query would only add another wait."""


class PostgresWatchdog:
    """Tracks every wait of this process; `wait` is psycopg2's wait callback."""

    def __init__(self) -> None:
        self._since: dict[Any, float] = {}
        self._hangs = False
        self._watcher: gevent.Greenlet[..., Any] | None = None
        self._clock: Clock | None = None
        self._parameters: Mapping[str, Any] = {}

    def install(self) -> None:
        """Make psycopg2 wait on gevent's loop, which serves other greenlets meanwhile."""
        extensions.set_wait_callback(self.wait)

    def watch(self, clock: Clock, parameters: Mapping[str, Any]) -> None:
        """Watch the waits of this process from now on; called once, after the fork.

        `parameters` are the driver's connection parameters.
        """
        self._clock = clock
        self._parameters = parameters
        self._since.clear()
        self._watcher = gevent.spawn(self._run, clock)

    def wait(self, connection: Any) -> None:
        """Return once the driver's connection has got what it waits for.

        Raises: psycopg2.OperationalError.
        """
        if self._hangs and gevent.getcurrent() is not self._watcher:
            raise PostgresHangs("PostgreSQL hangs")
        if connection.status == extensions.STATUS_SETUP:
            with gevent.Timeout(CONNECT_SECONDS, psycopg2.OperationalError("no answer in time")):
                return _wait(connection)
        if self._clock is None:
            return _wait(connection)
        self._since[connection] = self._clock.monotonic()
        try:
            return _wait(connection)
        finally:
            del self._since[connection]

    def _run(self, clock: Clock) -> None:
        while True:
            clock.sleep(LOOK_SECONDS)
            try:
                self._look(clock)
            except Exception:
                # Nothing restarts this greenlet.
                log.exception("the waits for PostgreSQL were not looked after")

    def _look(self, clock: Clock) -> None:
        now = clock.monotonic()
        silent = [c for c, since in self._since.items() if now - since > SILENCE_SECONDS]
        if not silent:
            return
        if any(_answers(self._parameters) for _ in range(QUESTIONS)):
            for connection in self._since.keys() & silent:
                self._since[connection] = clock.monotonic()
            return
        log.error("PostgreSQL hangs; requests are refused until it answers")
        self._hangs = True
        try:
            for connection in self._since:
                _cut(connection)
            while not _answers(self._parameters):
                clock.sleep(LOOK_SECONDS)
        finally:
            self._hangs = False
        log.warning("PostgreSQL answers again")


def _wait(connection: Any) -> None:
    while (state := connection.poll()) != extensions.POLL_OK:
        if state == extensions.POLL_READ:
            wait_read(connection.fileno())
        else:
            wait_write(connection.fileno())


def _answers(parameters: Mapping[str, Any]) -> bool:
    """Return whether the server answers on a new connection; a refusal is an answer.

    Its host is resolved each time, since a failover may change its address.
    """
    try:
        with gevent.Timeout(ANSWER_SECONDS):
            connection = psycopg2.connect(**postgres_addresses.with_addresses(parameters))
            try:
                connection.cursor().execute("SELECT 1")
            finally:
                connection.close()
    except gevent.Timeout:
        return False
    except psycopg2.Error:
        return True
    return True


def _cut(connection: Any) -> None:
    """End the connection for whoever waits for it.

    An exception thrown into the waiting greenlet could hit it when it waits for something else.
    """
    with suppress(OSError, psycopg2.Error), closing(Handle(connection)) as handle:
        handle.abort()
