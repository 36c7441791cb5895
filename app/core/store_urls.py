"""The URLs of the database and of Redis, checked by the clients that will use them.

What a client would refuse only at the first command must stop the start. Nothing is connected to.
Errors never repeat a part of a URL: in a mistyped one any part may be the password.
"""

import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import psycopg2
from psycopg2 import extensions
from redis.connection import ConnectionPool, parse_url
from redis.exceptions import RedisError
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from app.core import sentinel_urls
from app.core.texts import MAX_SOCKET_PATH_BYTES, sqlite_url

# SQLAlchemy's names of its drivers for PostgreSQL are understood, too; psycopg2 is used.
_POSTGRESQL = re.compile(r"postgres(ql)?(\+\w+)?://")
# libpq reads these only once it connects over TCP.
_INTEGERS = (
    "connect_timeout",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_count",
    "tcp_user_timeout",
)
_NOWHERE = "/nonexistent/gatehouse"
# Redis' client hands anything else to its constructors, which expect objects or fail much later.
_REDIS_OPTIONS = {"client_name", "db", "password", "username"}
_TLS_OPTIONS = {
    "ssl_ca_certs",
    "ssl_ca_path",
    "ssl_cert_reqs",
    "ssl_certfile",
    "ssl_check_hostname",
    "ssl_keyfile",
    "ssl_password",
}


def database_url(raw: str) -> str:
    """Return the URL of a database that can be used; the path of a file is made absolute.

    Raises: ValueError.
    """
    if _POSTGRESQL.match(raw):
        url = _POSTGRESQL.sub("postgresql://", raw, count=1)
        _require_libpq_takes(libpq_parameters(url))
        return url
    try:
        file_url = make_url(raw)
    except (ArgumentError, ValueError):
        raise ValueError("is not a database URL") from None
    if file_url.drivername.split("+")[0] != "sqlite":
        raise ValueError("must start with postgresql:// or sqlite:///")
    path = file_url.database
    if not path or path == ":memory:":
        raise ValueError("must name a file: every worker would have a memory database of its own")
    if Path(path).is_dir():
        raise ValueError("must name a file, not a folder")
    return sqlite_url(Path(path).absolute())


def libpq_parameters(url: str) -> dict[str, str]:
    """Return what a URL of PostgreSQL sets, in any form that libpq's manual has.

    Raises: ValueError.
    """
    try:
        return extensions.parse_dsn(_POSTGRESQL.sub("postgresql://", url, count=1))
    except psycopg2.ProgrammingError:
        raise ValueError(
            "PostgreSQL's client cannot read it; see its manual, section Connection URIs"
        ) from None


def _require_libpq_takes(parameters: dict[str, str]) -> None:
    """Make sure that libpq takes the values, too.

    It checks them before it connects, so it may look for sockets that do not exist.
    Raises: ValueError.
    """
    for name in _INTEGERS:
        if name in parameters and not re.fullmatch(r"-?\d{1,9}", parameters[name], re.ASCII):
            raise ValueError(f"{name} must be a whole number")
    if parameters.get("client_encoding", "UTF8").upper() not in {"UTF8", "UTF-8"}:
        raise ValueError("client_encoding must be UTF8")
    lists = [parameters[name].split(",") for name in ("host", "hostaddr") if name in parameters]
    if len({len(each) for each in lists}) > 1:
        raise ValueError("host and hostaddr must have as many members")
    hosts = ",".join([_NOWHERE for _ in (lists or [[""]])[0]])
    nowhere: dict[str, Any] = {**parameters, "host": hosts}
    nowhere.pop("hostaddr", None)
    if parameters.get("gssencmode") == "require":
        del nowhere["gssencmode"]  # which no socket can do
    try:
        psycopg2.connect(**nowhere).close()
    except psycopg2.Error as error:
        if _NOWHERE not in str(error):
            reason = re.sub(r'".*"', "...", str(error).strip().partition("\n")[0])
            raise ValueError(f"PostgreSQL's client refuses it: {reason}") from None


def redis_url(raw: str) -> str:
    """Return the URL of a Redis that can be used.

    Raises: ValueError.
    """
    if raw.startswith(("redis+cluster://", "rediss+cluster://")):
        raise ValueError(
            "a Redis Cluster cannot be used; name one server (redis://), or the Sentinels of one "
            "that has replicas (redis+sentinel://)"
        )
    if sentinel_urls.is_sentinel_url(raw):
        _require_client_takes(sentinel_urls.parse(raw).server_url)
    else:
        _require_client_takes(raw)
    return raw


def _require_client_takes(raw: str) -> None:
    """Make sure that Redis' client can use the URL of a server.

    Raises: ValueError.
    """
    try:
        url, parsed = urlsplit(raw), parse_url(raw)  # type: ignore[no-untyped-call]
    except ValueError:
        raise ValueError(
            "must be a redis://, rediss://, unix://, redis+sentinel:// or rediss+sentinel:// URL"
        ) from None
    allowed = _REDIS_OPTIONS | (_TLS_OPTIONS if url.scheme == "rediss" else set())
    if not parse_qs(url.query, keep_blank_values=True).keys() <= allowed:
        raise ValueError(f"has an option that is none of {', '.join(sorted(allowed))}")
    if url.fragment:
        raise ValueError("must not contain #; write %23")
    if url.scheme == "unix":
        if not 0 < len(os.fsencode(parsed.get("path", ""))) <= MAX_SOCKET_PATH_BYTES:
            raise ValueError(f"must name a socket by at most {MAX_SOCKET_PATH_BYTES} bytes")
    elif not re.fullmatch(r"/?\d*", url.path, re.ASCII):
        raise ValueError("must end with the number of a database, or none")
    if parsed.get("db", 0) < 0:
        raise ValueError("db must not be negative")
    try:
        parsed.get("host", "localhost").encode("idna")
        ConnectionPool.from_url(raw).make_connection()
    except (RedisError, TypeError, ValueError):
        raise ValueError("Redis' client refuses its host or an option") from None
