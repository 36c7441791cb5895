"""A year of many accounts: what each act of one writes, and what their habits make of that."""

import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from time import monotonic, sleep, time
from typing import Any, TypeVar

import pyotp

from app.mfa.totp import STEP_SECONDS
from bench import accounts, load, procs
from bench.accounts import username
from bench.api import (
    LOGIN,
    LOGINS_AT_ONCE,
    PASSWORD,
    Unexpected,
    cookie_header,
    credentials,
    email,
)
from bench.habits import Act, Habits, Year, year_of
from bench.lab import CLIENTS, Lab, log
from bench.load import Request, render
from bench.report import Figure, Row
from bench.scenarios.logins import MAX_RUN_SECONDS, SETTINGS_SECONDS
from bench.scenarios.requests import ME, REFRESH, TOKENS
from bench.servers import Postgres, Service

T = TypeVar("T")
AUTH = "/api/v1/auth"
SETUP = f"{AUTH}/mfa/totp/setup"
ACCOUNTS = 500
SIZES = (100_000, 10_000_000)
MAIL_SECONDS = 120.0
# Without full pages in the log, which depend on checkpoints, and nothing that runs by itself.
REPEATABLE = {"full_page_writes": "off", "autovacuum": "off"}
TABLES = (
    "users",
    "user_profiles",
    "login_sessions",
    "browsers",
    "audit_log",
    "mail_outbox",
    "access_tokens",
    "mfa_factors",
    "mfa_recovery_codes",
)
GROWN = ", ".join(f"(SELECT count(*) FROM {table})" for table in TABLES)
STATE = (
    "SELECT txid_snapshot_xmax(txid_current_snapshot()), pg_current_wal_insert_lsn() - '0/0',"
    f" {GROWN}"
)
WAITING = "SELECT count(*) FROM mail_outbox WHERE status IN ('queued', 'sending')"
LINK = re.compile(r"/api/v1/auth/contact-verification/confirm\?token=[\w-]+")
# Of an act, per time it is done: less is not told.
LEAST_SHARE = 0.01


@dataclass(frozen=True)
class State:
    """How much has been written and computed up to a moment."""

    writes: int
    wal_bytes: int
    rows: dict[str, int]
    cpu_seconds: float


def year(lab: Lab) -> Iterator[Row]:
    """Let accounts do each act once, then add up what many do in a year."""
    names = [username(n) for n in range(1, lab.options.count(ACCOUNTS) + 1)]
    with ExitStack() as stack:
        postgres = Postgres(stack, **REPEATABLE)
        service = Service(stack, postgres, "year", GATEHOUSE_RESPONSE_FLOOR_MS="0")
        service.flask("config", "set", "auth_register_activation_enabled", "true", stdin="")
        sleep(SETTINGS_SECONDS)
        acts: dict[str, Act] = {}
        empty = _sizes(service)
        for name, requests in _acts(service, names):
            log(f"{name}, {len(requests)} times")
            act = _measured(service, requests)
            acts[name] = acts[name] + act if name in acts else act
        row_bytes = _row_bytes(empty, _sizes(service))
    for name, act in acts.items():
        yield Row(f"an account's act: {name}", lab.database, [*_act_figures(act)])
    yield Row(
        "bytes of a row, with its indexes",
        lab.database,
        [Figure(table, size, " B") for table, size in row_bytes.items()],
    )
    for size in SIZES:
        figures = _year_figures(year_of(size, Habits(), acts), row_bytes)
        yield Row(f"a year of {size:,} accounts", lab.database, [*figures])


def _acts(service: Service, names: list[str]) -> Iterator[tuple[str, list[Request]]]:
    """Yield what all accounts do; a name that comes again continues the act."""
    api = service.api
    new = [{"username": name, "email": email(name), "password": PASSWORD} for name in names]
    yield "register", [Request(render("POST", f"{AUTH}/register", body), 201) for body in new]
    links = _links(service, len(names))
    yield "confirm the address", [Request(render("GET", link), 302) for link in links]
    cookies = api.login_all(names)  # by the first browser of each, which nobody is told of
    yield "sign in", [_sign_in(*each) for each in zip(names, cookies, strict=True)]
    yield "sign in, new browser", [_sign_in(name) for name in names]
    wrong = [{**credentials(name), "password": "wrong"} for name in names]
    yield "wrong password", [Request(render("POST", LOGIN, body), 401) for body in wrong]
    yield "refresh", [_by(each, "POST", REFRESH) for each in cookies]
    cookies = _each(lambda each: _signed_in(service, *each), [*zip(names, cookies, strict=True)])
    yield "who am I", [_by(each, "GET", ME) for each in cookies]
    named = {"display_name": "Ada Lovelace"}
    yield "change the name", [_by(each, "PATCH", f"{AUTH}/profile", named) for each in cookies]
    asked = {"name": "bench", "scopes": ["profile:read"], "expires_in_days": 30}
    yield "make a token", [_by(each, "POST", TOKENS, asked, status=201) for each in cookies]
    asked["name"] = "another"
    made = _each(lambda each: _answer(service, each, TOKENS, asked, status=201), cookies)
    bearers = [f"Bearer {each['token']}" for each in made]
    yield "call with a token", [Request(render("GET", ME, Authorization=each)) for each in bearers]
    yield from _second_steps(service, names, cookies)
    yield "sign out", [_by(each, "POST", f"{AUTH}/logout") for each in cookies]


def _second_steps(
    service: Service, names: list[str], cookies: list[dict[str, str]]
) -> Iterator[tuple[str, list[Request]]]:
    """Yield setting up an app by the present code, and signing in by the next one."""
    started = _each(lambda each: _answer(service, each, f"{SETUP}/start"), cookies)
    setups = [
        {"flow_token": each["flow_token"], "code": _code(each["secret"], 0), "name": "telephone"}
        for each in started
    ]
    pairs = [*zip(cookies, setups, strict=True)]
    yield "set up an app", [_by(each, "POST", f"{SETUP}/finish", body) for each, body in pairs]
    act = "sign in, two steps"
    yield act, [_sign_in(*each) for each in zip(names, cookies, strict=True)]
    flows = _each(lambda name: service.api.call("POST", LOGIN, credentials(name)).body, names)
    proofs = [
        {
            "flow_token": flow["data"]["flow_token"],
            "method": "totp",
            "code": _code(each["secret"], 1),
        }
        for flow, each in zip(flows, started, strict=True)
    ]
    pairs = [*zip(cookies, proofs, strict=True)]
    yield act, [_by(each, "POST", f"{AUTH}/mfa/challenge/verify", body) for each, body in pairs]


def _sign_in(name: str, cookies: dict[str, str] | None = None) -> Request:
    """Return a login, by a browser that the account has had if there are its cookies."""
    known = {"Cookie": f"service_device={cookies['service_device']}"} if cookies else {}
    return Request(render("POST", LOGIN, credentials(name), **known))


def _signed_in(service: Service, name: str, cookies: dict[str, str]) -> dict[str, str]:
    """Sign in by a browser that the account has had; return all its cookies."""
    known = f"service_device={cookies['service_device']}"
    answer = service.api.call("POST", LOGIN, credentials(name), Cookie=known).require(200)
    return cookies | answer.cookies


def _by(
    cookies: dict[str, str], method: str, path: str, body: Any = None, *, status: int = 200
) -> Request:
    headers = {"Cookie": cookie_header(cookies), "X_CSRF_Token": cookies["service_csrf"]}
    return Request(render(method, path, body, **headers), status)


def _answer(
    service: Service, cookies: dict[str, str], path: str, body: Any = None, *, status: int = 200
) -> Any:
    headers = {"Cookie": cookie_header(cookies), "X_CSRF_Token": cookies["service_csrf"]}
    return service.api.call("POST", path, body, **headers).require(status).body["data"]


def _each(do: Callable[[T], Any], things: Sequence[T]) -> list[Any]:
    with ThreadPoolExecutor(LOGINS_AT_ONCE) as pool:
        return list(pool.map(do, things))


def _code(secret: str, steps_ahead: int) -> str:
    return pyotp.TOTP(secret).at(int(time()) + steps_ahead * STEP_SECONDS)


def _links(service: Service, count: int) -> list[str]:
    """Return the mailed links, which the service writes into its log without a mail server."""
    found = set(LINK.findall(service.server.log.read_text()))
    if len(found) != count:
        raise Unexpected(f"{len(found)} links were mailed instead of {count}")
    return sorted(found)


def _measured(service: Service, requests: list[Request]) -> Act:
    """Do each request once; what the mails take that they cause counts, too."""
    with accounts.database(service) as (cursor, _):
        _wait_for_mails(cursor)  # of what was prepared
        before = _state(service, cursor)
        job = load.Job(
            service.port, CLIENTS, MAX_RUN_SECONDS, requests, limit=len(requests), warmup=0
        )
        load.run(job, service.parts)
        _wait_for_mails(cursor)
        after = _state(service, cursor)
    each = 1 / len(requests)
    return Act(
        {table: each * (rows - before.rows[table]) for table, rows in after.rows.items()},
        each * (after.wal_bytes - before.wal_bytes),
        each * (after.writes - before.writes),
        each * 1000 * (after.cpu_seconds - before.cpu_seconds),
    )


def _state(service: Service, cursor: Any) -> State:
    now = procs.sample()
    cursor.execute(STATE)
    writes, wal_bytes, *rows = cursor.fetchone()
    cpu_seconds = sum(now.tree_seconds(pid) for pid in service.parts)
    return State(writes, int(wal_bytes), dict(zip(TABLES, rows, strict=True)), cpu_seconds)


def _wait_for_mails(cursor: Any) -> None:
    end = monotonic() + MAIL_SECONDS
    while monotonic() < end:
        cursor.execute(WAITING)
        if not cursor.fetchone()[0]:
            return
        sleep(0.2)
    raise Unexpected("the mails were not sent in time")


def _sizes(service: Service) -> dict[str, tuple[int, int]]:
    """Return bytes, with indexes but without what updates left behind, and rows of each table."""
    found = {}
    with accounts.database(service) as (cursor, _):
        for table in TABLES:
            cursor.execute(f"VACUUM FULL {table}")
            cursor.execute(f"SELECT pg_total_relation_size('{table}'), count(*) FROM {table}")
            found[table] = cursor.fetchone()
    return found


def _row_bytes(
    before: dict[str, tuple[int, int]], after: dict[str, tuple[int, int]]
) -> dict[str, float]:
    """Return by how much a row makes its table larger."""
    return {
        table: (size - before[table][0]) / (rows - before[table][1])
        for table, (size, rows) in after.items()
    }


def _act_figures(act: Act) -> Iterator[Figure]:
    for table, rows in act.rows.items():
        if rows >= LEAST_SHARE:
            yield Figure(f"rows of {table}", rows)
    yield Figure("transactions that write", act.writes)
    yield Figure("log of the database", act.wal_bytes / 1000, " kB")
    yield Figure("CPU", act.cpu_ms, " ms")


def _year_figures(year: Year, row_bytes: dict[str, float]) -> Iterator[Figure]:
    total = 0.0
    for table, rows in year.rows.items():
        total += rows * row_bytes[table]
        yield Figure(f"{table}, rows", rows)
        yield Figure(f"{table}, size", rows * row_bytes[table] / 1e9, " GB")
    yield Figure("all tables", total / 1e9, " GB")
    kept_for_ever = year.audit_rows * row_bytes["audit_log"]
    yield Figure("entries of the audit log in the year", year.audit_rows)
    yield Figure("audit_log, if it is kept for ever", kept_for_ever / 1e9, " GB")
    yield Figure("log of the database in the year", year.wal_bytes / 1e9, " GB")
    yield Figure("rows deleted an hour", year.deletions_an_hour)
    for name in ("who am I", "refresh", "sign in"):
        often = sum(times for act, times in year.peak.items() if act.startswith(name))
        yield Figure(f"{name}, in the busiest hour", often, "/s")
    yield Figure("transactions that write, in the busiest hour", year.peak_writes, "/s")
    yield Figure("cores, in the busiest hour", year.peak_cores)
