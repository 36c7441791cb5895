"""The least that requests can cost, whoever writes them: a Flask application by hand.

Each route asks the stores what the service has to ask, keeps what it has to keep, and computes what
it has to compute, with the drivers alone and the service's client of Redis, which is leaner than
redis-py's own. None has what makes that a service: schemas, settings, guards, limits, log lines,
metrics, patience with a database in trouble. What lies between these figures and those of the bare
route no design can save; what lies between the service's and these is the service's own.

- `GET /me`: a signed token, a read of session and account.
- `GET /sessions`: the same, and a read of five sessions.
- `POST /refresh`: a signed token, a write of one row, two new tokens.
- `POST /second-step`: two scripts in Redis (an attempt is taken before the code is looked at, the
  login is used up before the session is written), a read of account and factor, a sealed secret,
  three time steps, three rows in one transaction (session, used step, audit entry), two tokens.
"""

import hmac
import json
import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import cached_property
from hashlib import sha256
from secrets import token_hex, token_urlsafe
from typing import Any, Protocol

import gevent
import psycopg2
import pyotp
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from flask import Flask, Response, jsonify, request

from app.core.lua import Script
from app.core.redis import connect

ACCOUNTS = 64
SESSIONS = 5
WAITING = "waiting"
STEP_SECONDS = 30
SIGNED_BYTES = 200
KEY = sha256(b"the benchmark's").digest()
NONCE = b"\0" * 12

TABLES = (
    "CREATE TABLE accounts (id INTEGER PRIMARY KEY, name TEXT, version INTEGER, created_at TEXT)",
    "CREATE TABLE factors (user_id INTEGER PRIMARY KEY, last_step BIGINT)",
    "CREATE TABLE opened (id TEXT PRIMARY KEY, user_id INTEGER, selector TEXT UNIQUE, digest TEXT,"
    " address TEXT, agent TEXT, created_at TEXT, expires_at TEXT)",
    "CREATE INDEX opened_of ON opened (user_id)",
    "CREATE TABLE entries (id INTEGER PRIMARY KEY {generated}, user_id INTEGER, action TEXT,"
    " details TEXT, created_at TEXT)",
    "CREATE INDEX entries_of ON entries (user_id)",
)
ACCOUNT = "INSERT INTO accounts VALUES ({0}, 'account{0}', 1, 'then')"
FACTOR = "INSERT INTO factors VALUES ({0}, 0)"
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
RECORD = "INSERT INTO entries (user_id, action, details, created_at) VALUES ($1, $2, $3, $4)"
STATEMENTS = (FIND_ACCESS, LIST_SESSIONS, ROTATE, FIND_FACTOR, OPEN_SESSION, USE_STEP, RECORD)

FLOW = {"data": json.dumps({"user_id": 1, "agent": "bench"}), "state": "open", "attempts": 0}
TAKE = """
redis.call('ZADD', KEYS[2], ARGV[1], ARGV[2])
redis.call('HINCRBY', KEYS[1], 'attempts', 1)
return redis.call('HMGET', KEYS[1], 'data', 'state', 'attempts')
"""
# It leaves a login that can be used again, or the load would need a new one each time.
USE_UP = """
if redis.call('HGET', KEYS[1], 'state') ~= 'open' then return 0 end
redis.call('HSET', KEYS[1], 'state', 'open', 'used_by', ARGV[1])
redis.call('DEL', KEYS[2])
return 1
"""

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


def signature(text: str) -> str:
    """Return what makes a token of this text."""
    return hmac.digest(KEY, text.encode(), "sha256").hex()


def make_app() -> Flask:
    """Return the application; LEAST_DATABASE_URL and LEAST_REDIS_URL say where its stores are."""
    app = Flask(__name__)
    database = _database()
    redis = connect(os.environ["LEAST_REDIS_URL"])
    take, use_up = Script(TAKE), Script(USE_UP)
    box = AESGCM(KEY)
    sealed = box.encrypt(NONCE, pyotp.random_base32().encode(), b"factor")

    @app.get("/me")
    def me() -> Response:
        return _ok(_account(database))

    @app.get("/sessions")
    def sessions() -> Response:
        account = _account(database)
        names = ("id", "ip_address", "user_agent", "created_at", "expires_at")
        rows = database.read(LIST_SESSIONS, account["id"])
        return _ok([dict(zip(names, row, strict=True)) for row in rows])

    @app.post("/refresh")
    def refresh() -> Response:
        presented, token = _presented(), token_urlsafe(32)
        stored = sha256(token.encode()).hexdigest()
        database.write((ROTATE, (stored, str(time.time()), presented, "later")))
        return _with_cookies(_ok({"expires_in": 900}), token)

    @app.post("/second-step")
    def second_step() -> Response:
        body = request.get_json()
        attempt, user_id = token_hex(16), int(body["user_id"])
        keys = [f"flow:{sha256(body['flow_token'].encode()).hexdigest()}", f"slots:{user_id}"]
        flow = json.loads(take.answer(redis, keys, time.time(), attempt)[0])
        ((_, _, created_at, last_step),) = database.read(FIND_FACTOR, user_id)
        totp = pyotp.TOTP(box.decrypt(NONCE, sealed, b"factor").decode())
        now = int(time.time() / STEP_SECONDS)
        codes = [totp.generate_otp(step) for step in (now - 1, now, now + 1)]
        is_right = [hmac.compare_digest(code, body["code"]) for code in codes]
        use_up.run(redis, keys, attempt)
        session_id, token = token_hex(16), token_urlsafe(32)
        stored, details = sha256(token.encode()).hexdigest(), json.dumps({"is_right": is_right})
        known = ("127.0.0.1", flow["agent"], created_at, "later")
        database.write(
            (OPEN_SESSION, (session_id, session_id, stored, *known, user_id, last_step + 1)),
            (USE_STEP, (last_step, user_id)),
            (RECORD, (user_id, "second_step", details, created_at)),
        )
        return _with_cookies(_ok({"status": "authenticated"}), token)

    return app


def _database() -> Sqlite | Postgres:
    url = os.environ["LEAST_DATABASE_URL"]
    return Sqlite(url) if url.startswith("sqlite") else Postgres(url)


def _presented() -> str:
    """Return the text of the cookie's token, whose signature is checked."""
    text, _, signed = request.environ["HTTP_COOKIE"].removeprefix("token=").partition(".")
    if not hmac.compare_digest(signature(text), signed):
        raise ValueError("a token of somebody else's")
    return text


def _account(database: Database) -> dict[str, Any]:
    ((_, _, user_id, name, version, created_at),) = database.read(FIND_ACCESS, _presented())
    return {"id": user_id, "username": name, "version": version, "created_at": created_at}


def _ok(data: Any) -> Response:
    return jsonify(code="success", msg="", data=data, error=None)


def _with_cookies(answer: Response, token: str) -> Response:
    signed = signature("x" * SIGNED_BYTES)
    for name, value in (("access", signed), ("refresh", token), ("csrf", token_urlsafe(32))):
        answer.headers.add("Set-Cookie", f"{name}={value}; Path=/; HttpOnly; SameSite=Lax")
    return answer


def _set_up(*, generated: str) -> list[str]:
    statements = [table.format(generated=generated) for table in TABLES]
    for account in range(ACCOUNTS):
        statements += [ACCOUNT.format(account), FACTOR.format(account)]
        statements += [SESSION.format(account, number) for number in range(SESSIONS)]
    return statements


def main() -> None:
    """Create the tables, and a login that waits."""
    _database().create()
    with connect(os.environ["LEAST_REDIS_URL"]) as redis:
        redis.hset(f"flow:{sha256(WAITING.encode()).hexdigest()}", mapping=FLOW)


if __name__ == "__main__":
    main()
