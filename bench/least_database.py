"""The databases of bench/least.py: its tables, its statements, and the drivers by hand."""

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import cached_property
from typing import Any, Protocol

import gevent
import psycopg2
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

ACCOUNTS = 64
SESSIONS = 5

TABLES = (
    "CREATE TABLE accounts (id INTEGER PRIMARY KEY, name TEXT, version INTEGER, created_at TEXT)",
    "CREATE TABLE factors (user_id INTEGER PRIMARY KEY, last_step BIGINT)",
    "CREATE TABLE passkeys (id INTEGER PRIMARY KEY, user_id INTEGER, credential_id TEXT UNIQUE,"
    " public_key TEXT, sign_count BIGINT, used_at TEXT)",
    "CREATE TABLE opened (id TEXT PRIMARY KEY, user_id INTEGER, selector TEXT UNIQUE, digest TEXT,"
    " address TEXT, agent TEXT, created_at TEXT, expires_at TEXT)",
    "CREATE INDEX opened_of ON opened (user_id)",
    "CREATE TABLE entries (id INTEGER PRIMARY KEY {generated}, user_id INTEGER, action TEXT,"
    " details TEXT, created_at TEXT)",
    "CREATE INDEX entries_of ON entries (user_id)",
)
ACCOUNT = "INSERT INTO accounts VALUES ({0}, 'account{0}', 1, 'then')"
FACTOR = "INSERT INTO factors VALUES ({0}, 0)"
PASSKEY = "INSERT INTO passkeys VALUES ({0}, {0}, '{1}', '{2}', 0, NULL)"
SESSION = (
    "INSERT INTO opened VALUES"
    " ('{0}-{1}', {0}, '{0}-{1}', 'digest', '127.0.0.1', 'bench', 'then', 'later')"
)

FIND_ACCESS = (
    "SELECT o.id, o.expires_at, a.id, a.name, a.version, a.created_at"
    " FROM opened o JOIN accounts a ON a.id = o.user_id WHERE o.id = $1"
)
LIST_SESSIONS = (
    f"SELECT id, address, agent, created_at, expires_at FROM opened WHERE user_id = $1"
    f" ORDER BY created_at LIMIT {SESSIONS}"
)
ROTATE = "UPDATE opened SET digest = $1, created_at = $2 WHERE selector = $3 AND expires_at = $4"
FIND_FACTOR = (
    "SELECT a.name, a.version, a.created_at, f.last_step"
    " FROM accounts a JOIN factors f ON f.user_id = a.id WHERE a.id = $1"
)
# A step of an app is used once: no session without it.
OPEN_SESSION = (
    "INSERT INTO opened SELECT $1, a.id, $2, $3, $4, $5, $6, $7"
    " FROM accounts a JOIN factors f ON f.user_id = a.id WHERE a.id = $8 AND f.last_step < $9"
)
USE_STEP = "UPDATE factors SET last_step = $1 WHERE user_id = $2"
FIND_PASSKEY = (
    "SELECT a.id, a.name, a.version, a.created_at, p.id, p.public_key, p.sign_count"
    " FROM passkeys p JOIN accounts a ON a.id = p.user_id WHERE p.credential_id = $1"
)
# A count of signatures is used once, too.
OPEN_BY_PASSKEY = (
    "INSERT INTO opened SELECT $1, a.id, $2, $3, $4, $5, $6, $7"
    " FROM accounts a JOIN passkeys p ON a.id = p.user_id WHERE p.id = $8 AND p.sign_count = $9"
)
USE_PASSKEY = "UPDATE passkeys SET sign_count = $1, used_at = $2 WHERE id = $3"
RECORD = "INSERT INTO entries (user_id, action, details, created_at) VALUES ($1, $2, $3, $4)"
STATEMENTS = (
    FIND_ACCESS,
    LIST_SESSIONS,
    ROTATE,
    FIND_FACTOR,
    OPEN_SESSION,
    USE_STEP,
    FIND_PASSKEY,
    OPEN_BY_PASSKEY,
    USE_PASSKEY,
    RECORD,
)

# One key pair for every passkey: what it costs to verify does not depend on whose it is.
PRIVATE_KEY = ec.derive_private_key(1_000_003, ec.SECP256R1())
PUBLIC_KEY = PRIVATE_KEY.public_key().public_bytes(
    serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
)

Step = tuple[str, Sequence[Any]]


class Database(Protocol):
    """What the routes ask."""

    def read(self, statement: str, *values: Any) -> list[Any]:
        """Return the rows."""

    def write(self, *steps: Step) -> None:
        """Change all or nothing."""


class Sqlite:
    """A file in the service's mode, to which one writes at a time and the others ask again."""

    def __init__(self, url: str) -> None:
        self._file = url.removeprefix("sqlite:///")
        self._texts = {text: text.replace("$", "?") for text in STATEMENTS}

    def create(self) -> None:
        """Create tables and rows."""
        for statement in _set_up(generated=""):
            self._execute(statement)

    def read(self, statement: str, *values: Any) -> list[Any]:
        """Return the rows."""
        return self._execute(self._texts[statement], values).fetchall()

    def write(self, *steps: Step) -> None:
        """Change all or nothing."""
        while True:
            try:
                self._execute("BEGIN IMMEDIATE")
                break
            except sqlite3.OperationalError:
                gevent.sleep(0)
        for statement, values in steps:
            self._execute(self._texts[statement], values)
        self._execute("COMMIT")

    @cached_property
    def _execute(self) -> Callable[..., sqlite3.Cursor]:
        # Made by each worker: none may be carried through a fork (sqlite.org/howtocorrupt.html).
        execute = sqlite3.connect(self._file, isolation_level=None, timeout=0).execute
        execute("PRAGMA journal_mode = WAL")
        execute("PRAGMA synchronous = NORMAL")
        return execute


class Postgres:
    """Connections that know the statements, each used by one request at a time."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._free: list[Any] = []
        self._texts = {
            text: f"EXECUTE s{number} ({', '.join(['%s'] * text.count('$'))})"
            for number, text in enumerate(STATEMENTS)
        }

    def create(self) -> None:
        """Create tables and rows."""
        with closing(self._connect()) as connection, closing(connection.cursor()) as cursor:
            for statement in _set_up(generated="GENERATED ALWAYS AS IDENTITY"):
                cursor.execute(statement)

    def read(self, statement: str, *values: Any) -> list[Any]:
        """Return the rows."""
        connection = self._take()
        cursor = connection.cursor()
        cursor.execute(self._texts[statement], values)
        rows: list[Any] = cursor.fetchall()
        self._free.append(connection)
        return rows

    def write(self, *steps: Step) -> None:
        """Change all or nothing: what is sent as one message is one transaction."""
        connection = self._take()
        text = ";".join(self._texts[statement] for statement, _ in steps)
        connection.cursor().execute(text, [value for _, values in steps for value in values])
        self._free.append(connection)

    def _take(self) -> Any:
        if self._free:
            return self._free.pop()
        connection = self._connect()
        cursor = connection.cursor()
        for number, text in enumerate(STATEMENTS):
            cursor.execute(f"PREPARE s{number} AS {text}")
        return connection

    def _connect(self) -> Any:
        connection = psycopg2.connect(self._url)
        connection.autocommit = True
        return connection


def session_of(number: int) -> str:
    """Return what the first session of an account is named and found by."""
    return f"{number}-0"


def credential_of(number: int) -> str:
    """Return the credential id of an account's passkey, in base64url."""
    return f"credential{number:08}"


def _set_up(*, generated: str) -> list[str]:
    statements = [table.format(generated=generated) for table in TABLES]
    for account in range(ACCOUNTS):
        statements += [ACCOUNT.format(account), FACTOR.format(account)]
        statements.append(PASSKEY.format(account, credential_of(account), PUBLIC_KEY.hex()))
        statements += [SESSION.format(account, number) for number in range(SESSIONS)]
    return statements
