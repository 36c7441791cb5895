"""A bounded pool of driver connections that serves waiting callers first come, first served.

SQLAlchemy's own pool lets newcomers overtake waiting callers, which then starve under load, and
costs more per checkout than a prepared statement does.
"""

import threading
from collections import deque
from typing import Any

from psycopg2 import InterfaceError
from sqlalchemy import Engine
from sqlalchemy.pool import PoolProxiedConnection

from app.core.errors import DatabaseUnavailable
from app.core.readable import is_readable


def is_closed_by_server(connection: Any) -> bool:
    """Return whether an idle connection was closed by the server, e.g. when it restarted.

    No query is pending on it, so whatever there is to read is a final message, or EOF.
    """
    try:
        return is_readable(connection.fileno())
    except InterfaceError:
        return True


class NoConnectionFree(Exception):
    """Every connection was in use for as long as a caller waits for one."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"no connection was free for {seconds:g} s")


class _Waiter:
    """A caller waiting for its turn; a turn without a `connection` means: open one."""

    def __init__(self) -> None:
        self.has_turn = threading.Event()
        self.connection: PoolProxiedConnection | None = None


class DriverPool:
    """Pools at most `size` connections of `engine`, which must not pool by itself."""

    def __init__(self, engine: Engine, size: int, timeout_seconds: float) -> None:
        self._engine = engine
        self._has_server = engine.dialect.name != "sqlite"
        self._timeout_seconds = timeout_seconds
        self._lock = threading.Lock()
        self._idle: list[PoolProxiedConnection] = []
        self._waiting: deque[_Waiter] = deque()
        self._turns = size

    def take(self) -> PoolProxiedConnection:
        """Return a connection, to be given back with `put` or `drop`.

        Raises: DatabaseUnavailable when none can be made, or none becomes free in time.
        """
        waiter = None
        with self._lock:
            if self._turns:
                self._turns -= 1
                connection = self._idle.pop() if self._idle else None
            else:
                waiter = _Waiter()
                self._waiting.append(waiter)
        if waiter is not None:
            connection = self._wait(waiter)
        elif connection is not None and self._has_server and is_closed_by_server(connection):
            self._close_idle(connection)
            connection = None
        return connection or self._make()

    def put(self, connection: PoolProxiedConnection) -> None:
        """Give a connection back for others to use."""
        self._pass_on(connection)

    def drop(self, connection: PoolProxiedConnection, error: BaseException) -> None:
        """Close a connection in an unknown state, and free its slot."""
        connection.invalidate(error)
        self._pass_on(None)

    def drop_all(self, connection: PoolProxiedConnection, error: BaseException) -> None:
        """Close a connection that was lost, and the idle ones, which are lost as well."""
        self._close_idle(error=error)
        self.drop(connection, error)

    def forget(self) -> None:
        """Leave the idle connections to the parent process they were inherited from."""
        with self._lock:
            for connection in self._idle:
                connection.detach()
            self._idle = []

    def close(self) -> None:
        """Close the idle connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _pass_on(self, connection: PoolProxiedConnection | None) -> None:
        with self._lock:
            if self._waiting:
                waiter = self._waiting.popleft()
                waiter.connection = connection
                waiter.has_turn.set()
                return
            self._turns += 1
            if connection is not None:
                self._idle.append(connection)

    def _close_idle(
        self, *others: PoolProxiedConnection, error: BaseException | None = None
    ) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in (*idle, *others):
            connection.invalidate(error)

    def _wait(self, waiter: _Waiter) -> PoolProxiedConnection | None:
        try:
            has_turn = waiter.has_turn.wait(self._timeout_seconds)
        except BaseException:  # interrupted, e.g. by a timeout
            if not self._leave(waiter):
                self._pass_on(waiter.connection)
            raise
        if not has_turn and self._leave(waiter):
            raise DatabaseUnavailable from NoConnectionFree(self._timeout_seconds)
        return waiter.connection

    def _leave(self, waiter: _Waiter) -> bool:
        """Stop a caller's wait; False if it has got its turn already."""
        with self._lock:
            if waiter not in self._waiting:
                return False
            self._waiting.remove(waiter)
            return True

    def _make(self) -> PoolProxiedConnection:
        driver: Any = self._engine.dialect.dbapi
        try:
            return self._engine.raw_connection()
        except driver.Error as error:
            # Unlike connect(), this passes the driver's own errors through.
            self._pass_on(None)
            raise DatabaseUnavailable from error
        except BaseException:
            self._pass_on(None)
            raise
