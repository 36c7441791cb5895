"""A watchdog over the waits for PostgreSQL, which take place on gevent's loop.

A server that hangs keeps its connections, and libpq waits for an answer without end: every request
would hang until the proxy gives up. A statement may take its time, though. So while one does, the
server is asked over connections of their own; when two get no answer either, all waits end, and
nobody begins another until the server answers again.
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
# One answer can be late because this machine stood still; to end all waits for that would be wrong.
QUESTIONS = 2
# libpq leaves its own limit to whoever waits in its place.
CONNECT_SECONDS = 5.0
LOOK_SECONDS = 0.5


class PostgresHangs(psycopg2.OperationalError):
    """The server hangs; to ask it would only make one more wait."""


class PostgresWatchdog:
    """Knows every wait of this process; `wait` is psycopg2's wait callback."""

    def __init__(self) -> None:
        self._since: dict[Any, float] = {}
        self._hangs = False
        self._watcher: gevent.Greenlet[..., Any] | None = None
        self._clock: Clock | None = None
        self._parameters: Mapping[str, Any] = {}

    def install(self) -> None:
        """Have psycopg2 wait by gevent's loop, which serves others meanwhile."""
        extensions.set_wait_callback(self.wait)

    def watch(self, clock: Clock, parameters: Mapping[str, Any]) -> None:
        """Look after the waits of this process from now on; called once after the fork.

        `parameters` are what the driver is told to make a connection.
        """
        self._clock = clock
        self._parameters = parameters
        self._since.clear()
        self._watcher = gevent.spawn(self._run, clock)

    def wait(self, connection: Any) -> None:
        """Return when the driver's connection has got what it waits for.

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
                # This greenlet is never started again.
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
    """Tell whether the server answers a new connection; a refusal is an answer.

    After a failover its name stands for another address.
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

    To throw something at the waiting greenlet could hit it when it waits for something else.
    """
    with suppress(OSError, psycopg2.Error), closing(Handle(connection)) as handle:
        handle.cut()
