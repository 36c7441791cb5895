"""PostgreSQL: how it is found, connected to, and waited for on gevent's loop."""

import socket
from select import POLLIN
from time import monotonic
from typing import Any

import gevent
import psycopg2
from gevent.monkey import get_original
from gevent.socket import wait_read, wait_write
from psycopg2 import extensions
from sqlalchemy import Connection, Engine, ExceptionContext, event
from sqlalchemy.exc import InvalidatePoolError
from sqlalchemy.pool import ConnectionPoolEntry

from app.core.store_urls import libpq_parameters
from app.store.db import only_reads

# libpq's parameters unless the URL sets them. If a server vanishes silently, as in a failover, that
# is noticed within 25 seconds; the kernel by default takes a quarter of an hour or more.
DEFAULTS: dict[str, Any] = {
    "connect_timeout": 5,
    "application_name": "gatehouse",
    "client_encoding": "UTF8",
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,  # ms
}
# SQLSTATEs by which a server tells that it is a standby, or takes no writes: 25006 for a write, and
# 40001 for a read whose rows the primary removed, which has no other reason at our isolation level.
REFUSED_BY_STANDBY = frozenset({"25006", "40001"})
# Among servers that will do, libpq prefers some, or shuffles them.
LIBPQ_CHOOSES = frozenset({"prefer-standby", "random"})
# A hanging server costs a request at most the sum of these: a check of the connection, the question
# whether the server is there at all, and a try to connect anew.
SILENCE_SECONDS = 2.0
ANSWER_SECONDS = 2.0
CONNECT_SECONDS = 4.0
# A connection that was in use within this time is believed to lead to the server, unless there is
# something to read from it: asking costs as much as a small statement.
REST_SECONDS = 1.0
RESTING_SINCE = "resting_since"


class TakesNoWrites(psycopg2.OperationalError):
    """The server is a standby, or its sessions are read-only, so no connection to it is kept."""


class NoAnswer(psycopg2.OperationalError):
    """The server, or the DNS, gave no answer in time."""


def connect_args(url: str) -> dict[str, Any]:
    """Return the driver's connection parameters; the URL has the last word.

    By default a standby, to which the server's address may lead during a failover, is refused. With
    several hosts, the choice is left to whoever wrote the URL.
    """
    given = libpq_parameters(url)
    hosts = given.get("hostaddr") or given.get("host") or ""
    writable = {} if "," in hosts else {"target_session_attrs": "read-write"}
    return DEFAULTS | writable | given


def install(engine: Engine) -> None:
    """Let reads commit by themselves, and keep no connections that are of no use."""
    event.listen(engine, "do_connect", Servers().connect)
    event.listen(engine, "connect", _set_up)
    event.listen(engine, "checkout", _check)
    event.listen(engine, "begin", _begin)
    event.listen(engine, "reset", _reset)
    event.listen(engine, "handle_error", _judge)


class Servers:
    """The servers that a URL names. The one that was connected to last is tried first.

    libpq would go through the list for each connection, and never get past one that is silent.
    """

    def __init__(self) -> None:
        self._last: dict[str, str] = {}

    def connect(self, dialect: Any, _record: object, args: Any, parameters: dict[str, Any]) -> Any:
        """Connect to the first that does not refuse.

        Raises: psycopg2.OperationalError, TakesNoWrites if any was a standby.
        """
        servers = _servers(parameters)
        if len(servers) == 1:
            return _connect(dialect, args, parameters)
        refusals = []
        for server in sorted(servers, key=lambda each: each != self._last):
            where = ", ".join(server.values())
            silence = NoAnswer(f"PostgreSQL did not answer in time at {where}")
            try:
                with gevent.Timeout(CONNECT_SECONDS / len(servers), silence):
                    connection = _connect(dialect, args, parameters | server)
            except psycopg2.OperationalError as error:
                refusals.append(error)
            else:
                self._last = server
                return connection
        raise next((one for one in refusals if isinstance(one, TakesNoWrites)), refusals[-1])


def _servers(parameters: dict[str, Any]) -> list[dict[str, str]]:
    """Return the parameters that name each server alone; one if libpq has to choose by itself."""
    choices = {parameters.get(name) for name in ("target_session_attrs", "load_balance_hosts")}
    if choices & LIBPQ_CHOOSES:
        return [{}]
    lists = {
        name: str(parameters[name]).split(",")
        for name in ("host", "hostaddr", "port")
        if parameters.get(name)
    }
    number = max(map(len, lists.values()), default=1)
    return [
        {name: each[n if len(each) > 1 else 0] for name, each in lists.items()}
        for n in range(number)
    ]


def _connect(dialect: Any, args: Any, parameters: dict[str, Any]) -> Any:
    host = str(parameters.get("host") or "")
    # libpq would wait for the DNS in C.
    if host and host[0] not in "/@" and "," not in host and not parameters.get("hostaddr"):
        addresses = _addresses(host, parameters.get("port"))
        parameters["hostaddr"] = ",".join(addresses)
        # Certificates are verified against the name. libpq wants lists of equal length.
        parameters["host"] = ",".join([host] * len(addresses))
    try:
        return dialect.connect(*args, **parameters)
    except UnicodeDecodeError as error:  # a server refuses in its own language and encoding
        raise psycopg2.OperationalError("the refusal is not in UTF-8") from error
    except psycopg2.OperationalError as error:
        if "session is read-only" in str(error):  # as libpq says it
            raise TakesNoWrites(str(error)) from error
        raise


def _set_up(connection: Any, _record: object) -> None:
    connection.autocommit = True  # each statement sees the newest state


def _check(connection: Any, record: ConnectionPoolEntry, _proxy: object) -> None:
    """Make sure that a connection of the pool still leads to the server."""
    since = record.info.get(RESTING_SINCE)
    if since is None:  # it is new
        return
    try:
        if monotonic() - since > REST_SECONDS or _has_news(connection):
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1")
    except psycopg2.Error as error:
        raise InvalidatePoolError from error  # the pool makes a new one, and trusts none older


def _begin(connection: Connection) -> None:
    """Begin a transaction, unless the connection only reads.

    psycopg2 sends BEGIN with the first statement. Here and in `_reset`, the level is only ever set
    while `autocommit` is off: otherwise each change would be a SET of its own.
    """
    if not only_reads(connection):
        driver: Any = connection.connection.driver_connection
        driver.autocommit = False
        driver.isolation_level = extensions.ISOLATION_LEVEL_READ_COMMITTED


def _reset(connection: Any, record: ConnectionPoolEntry, _state: object) -> None:
    """End what a connection that is given back was used for, instead of the pool.

    If the server went away just now, that must not end the request, which has its answer.
    """
    try:
        if not connection.autocommit:
            connection.rollback()
            connection.isolation_level = None
            connection.autocommit = True
        record.info[RESTING_SINCE] = monotonic()
    except psycopg2.Error as error:
        record.invalidate(error)


def _judge(context: ExceptionContext) -> None:
    """Throw away a connection to a standby, and all older ones.

    Connections may outlive the move of an address, and behind a pooler lead to another server. They
    would be kept for good, since they pass `_check`.
    """
    if getattr(context.original_exception, "pgcode", None) in REFUSED_BY_STANDBY:
        context.is_disconnect = True


def _has_news(connection: Any) -> bool:
    """Return whether an idle connection has something to read, such as its end.

    By the system's own call: gevent's would let others run.
    """
    news = get_original("select", "poll")()
    news.register(connection.fileno(), POLLIN)
    return bool(news.poll(0))


def _addresses(host: str, port: Any) -> list[str]:
    try:
        with gevent.Timeout(CONNECT_SECONDS, NoAnswer(f"the DNS did not answer for {host}")):
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise psycopg2.OperationalError(f"{host} was not found: {error}") from error
    return list(dict.fromkeys(str(place[0]) for *_, place in found))


def wait_cooperatively() -> None:
    """Make psycopg2 wait on gevent's loop, which serves other greenlets meanwhile."""
    extensions.set_wait_callback(_wait)


def _wait(connection: Any) -> None:
    """Return once a connection has got what it waits for.

    A statement may be slow, but libpq would wait for a frozen server for good. So every few seconds
    the server is asked whether it is there. Raises: NoAnswer.
    """
    if connection.status == extensions.STATUS_SETUP:
        with gevent.Timeout(CONNECT_SECONDS, NoAnswer("PostgreSQL did not answer in time")):
            return _poll(connection)
    while True:
        try:
            with gevent.Timeout(SILENCE_SECONDS, NoAnswer("PostgreSQL hangs")):
                return _poll(connection)
        except NoAnswer:
            if not _answers(connection):
                raise


def _poll(connection: Any) -> None:
    while (state := connection.poll()) != extensions.POLL_OK:
        if state == extensions.POLL_READ:
            wait_read(connection.fileno())
        else:
            wait_write(connection.fileno())


def _answers(connection: Any) -> bool:
    """Return whether the server of a connection takes another one; a refusal is an answer."""
    info = connection.info
    try:
        with gevent.Timeout(ANSWER_SECONDS, NoAnswer()):
            psycopg2.connect(**info.dsn_parameters, password=info.password).close()
    except NoAnswer:
        return False
    except psycopg2.Error:
        return True
    return True
