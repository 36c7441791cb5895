"""Fills a service's database with accounts and sessions by plain SQL.

Accounts are copies of the administrator's row, so all have its password. They are numbered.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

from bench.api import email
from bench.servers import Service

USERNAME_PREFIX = "bench"
ORDINARY = range(1, 1001)


def username(number: int) -> str:
    """Return the name of an account."""
    return f"{USERNAME_PREFIX}{number}"


@dataclass(frozen=True)
class Dialect:
    """The SQL expressions below that differ between the databases."""

    series: str
    session_id: str
    digest: str
    no: str
    in_a_week: str
    before: tuple[str, ...]
    after: tuple[str, ...]


SQLITE = Dialect(
    series=(
        "(WITH RECURSIVE r(n) AS (VALUES({first}) UNION ALL SELECT n + 1 FROM r WHERE n < {last})"
        " SELECT n FROM r)"
    ),
    session_id="lower(hex(randomblob(16)))",
    digest="lower(hex(randomblob(32)))",
    no="0",
    in_a_week="datetime('now', '+7 days') || '.000000'",
    before=(),
    after=("ANALYZE",),
)
POSTGRES = Dialect(
    series="(SELECT generate_series({first}, {last}) AS n)",
    session_id="gen_random_uuid()",
    digest="encode(sha256(gen_random_uuid()::text::bytea), 'hex')",
    no="false",
    in_a_week="now() + interval '7 days'",
    # Foreign keys hold by construction; checking each would take most of the time.
    before=("SET session_replication_role = replica", "SET synchronous_commit = off"),
    # So that neither autovacuum nor a checkpoint disturbs a measured run.
    after=("VACUUM ANALYZE users, login_sessions", "CHECKPOINT"),
)


def fill(service: Service, users: range, sessions_each: int = 0) -> None:
    """Create accounts, each with `sessions_each` live sessions."""
    with database(service) as (cursor, dialect):
        for statement in dialect.before:
            cursor.execute(statement)
        cursor.execute(_insert_users(cursor, dialect, users))
        if sessions_each:
            cursor.execute(_insert_sessions(dialect, users, sessions_each))
        for statement in dialect.after:
            cursor.execute(statement)


def fill_audit_log(service: Service, rows: int, users: int) -> None:
    """Add entries of sign-ins, spread over the accounts and over 90 days; PostgreSQL only."""
    columns = "user_id, action, entity_type, entity_id, entity_name, ip_address, created_at"
    values = (
        f"1 + n % {users}, 'user_login', 'auth_session', n, 'bench', '127.0.0.1',"
        f" now() - interval '90 days' * n / {rows}"
    )
    with database(service) as (cursor, dialect):
        cursor.execute("SET synchronous_commit = off")
        series = _series(dialect, range(1, rows + 1))
        cursor.execute(f"INSERT INTO audit_log ({columns}) SELECT {values} FROM {series} AS s")
        cursor.execute("VACUUM ANALYZE audit_log")


def let_an_hour_pass(service: Service) -> None:
    """Leave what an hour leaves to a clean-up; PostgreSQL only.

    Sessions that last a week have expired, and the oldest of 90 days of entries is outdated. Three
    fifths of the accounts have come back no more for longer than browsers are kept: their only one
    stays. One in a thousand has an old one beside a new one.
    """
    columns = "user_id, digest, name, first_seen_at, last_seen_at, seen_since_reset"
    last_seen = {"id % 10 < 6": 500, "id % 10 >= 6": 0, "id % 1000 = 7": 450}
    with database(service) as (cursor, dialect):
        for statement in dialect.before:
            cursor.execute(statement)
        for condition, days in last_seen.items():
            seen = f"now() - interval '{days} days'"
            cursor.execute(
                f"INSERT INTO browsers ({columns})"
                f" SELECT id, {dialect.digest}, 'Firefox', {seen}, {seen}, true"
                f" FROM users WHERE {condition}"
            )
        cursor.execute(
            "UPDATE login_sessions SET created_at = now() - interval '7 days',"
            " expires_at = now() - interval '1 minute'"
            " WHERE user_id % 168 = 0"
        )
        cursor.execute(
            "UPDATE audit_log SET created_at = now() - interval '91 days' WHERE id % 2160 = 0"
        )
        cursor.execute("VACUUM ANALYZE browsers, login_sessions, audit_log")
        cursor.execute("CHECKPOINT")


@contextmanager
def database(service: Service) -> Iterator[tuple[Any, Dialect]]:
    """Yield an autocommit cursor on the service's database, and its dialect."""
    connection: Any
    if service.postgres:
        connection, dialect = service.postgres.connect(service.database), POSTGRES
    else:
        connection, dialect = sqlite3.connect(service.sqlite_file, timeout=30), SQLITE
        connection.isolation_level = None
    with closing(connection), closing(connection.cursor()) as cursor:
        yield cursor, dialect


def _insert_users(cursor: Any, dialect: Dialect, users: range) -> str:
    cursor.execute("SELECT * FROM users LIMIT 0")
    columns = [column[0] for column in cursor.description if column[0] != "id"]
    domain = email("").removeprefix("@")
    own = {
        "username": f"'{USERNAME_PREFIX}' || n",
        "username_key": f"'{USERNAME_PREFIX}' || n",
        "email": f"'{USERNAME_PREFIX}' || n || '@{domain}'",
        "role": "'user'",
    }
    values = ", ".join(own.get(column, f"a.{column}") for column in columns)
    return (
        f"INSERT INTO users ({', '.join(columns)}) SELECT {values}"
        f" FROM users AS a CROSS JOIN {_series(dialect, users)} AS s"
        f" WHERE a.username_key = '{Service.ADMIN}' ORDER BY n"
    )


def _insert_sessions(dialect: Dialect, users: range, each: int) -> str:
    values = {
        "id": dialect.session_id,
        "user_id": "u.id",
        "refresh_selector": dialect.digest,
        "refresh_digest": dialect.digest,
        "is_limited": dialect.no,
        "ip_address": "'127.0.0.1'",
        "user_agent": "'bench'",
        "created_at": "u.created_at",
        "last_seen_at": "u.created_at",
        "confirmed_at": "u.created_at",
        "expires_at": dialect.in_a_week,
    }
    return (
        f"INSERT INTO login_sessions ({', '.join(values)}) SELECT {', '.join(values.values())}"
        f" FROM {_series(dialect, users)} AS s"
        f" JOIN users AS u ON u.username_key = '{USERNAME_PREFIX}' || s.n"
        f" CROSS JOIN {_series(dialect, range(each))} AS t"
    )


def _series(dialect: Dialect, numbers: range) -> str:
    return dialect.series.format(first=numbers.start, last=numbers[-1])
