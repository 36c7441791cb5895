"""What administrators read, and what a clean-up does, where there is much of it."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from time import perf_counter

from bench import accounts, load
from bench.accounts import username
from bench.api import cookie_header
from bench.lab import Lab, log
from bench.load import Job, Request, Run, render
from bench.report import Figure, Row, ratio
from bench.scenarios.growth import MANY
from bench.scenarios.requests import me_request
from bench.servers import Service

ENTRIES_EACH = 5
ADMIN = "/api/v1/admin"
# What is asked for, and the longest that 95 of 100 answers may take, in ms.
LISTS = {
    "first page of accounts": ("/users", 60),
    "a far page of accounts": ("/users?offset={far}", 400),
    "accounts by a part of the name": ("/users?keyword=ench{far}", 400),
    "first page of the audit log": ("/audit-logs", 60),
    "a far page of the audit log": ("/audit-logs?offset={far}", 400),
    "overview": ("/overview", 150),
}


def administration(lab: Lab) -> Iterator[Row]:
    """Ask for one list after another, and for who-am-I beside that; in the end, clean up."""
    users = lab.options.count(MANY)
    with ExitStack() as stack:
        service = lab.start(stack, GATEHOUSE_ARGON2="8/1/1")
        log(f"filling {users:,} accounts and {ENTRIES_EACH * users:,} entries of the audit log")
        accounts.fill(service, range(1, users + 1), sessions_each=1)
        accounts.fill_audit_log(service, ENTRIES_EACH * users, users)
        header = cookie_header(service.api.login(service.ADMIN))
        # Housekeeping counts the hours that are over, from which the overview is made.
        _clean_up(service, header)
        me = lab.job(service, requests=[me_request(service, username(1))])
        idle = lab.measure(service, me)
        for name, (path, most) in LISTS.items():
            raw = render("GET", ADMIN + path.format(far=users * 9 // 10), Cookie=header)
            job = lab.job(service, 1, requests=[Request(raw, 200, '"data"')])
            run = lab.measure(service, job)
            with load.background(job):
                beside = load.run(me, service.parts)
            grows = ratio([beside.percentile(0.99)], [idle.percentile(0.99)])
            figures = [
                Figure("p95", run.percentile(0.95), " ms", at_most=most),
                Figure("p99 of who am I beside it, times idle", grows, at_most=1.3),
            ]
            yield Row(name, lab.database, figures, [run])
        yield _clean_up_row(lab, service, header, me, idle)


def _clean_up_row(lab: Lab, service: Service, header: str, me: Job, idle: Run) -> Row:
    """Clean up after an hour, with who-am-I beside it."""
    accounts.let_an_hour_pass(service)
    began = perf_counter()
    with ThreadPoolExecutor(1) as pool:
        cleaning = pool.submit(_clean_up, service, header)
        beside = load.run(me, service.parts)
        deleted = cleaning.result()
    seconds = perf_counter() - began
    grows = ratio([beside.percentile(0.99)], [idle.percentile(0.99)])
    figures = [
        Figure("an hour's", seconds, " s", at_most=60),
        Figure("rows deleted", deleted),
        Figure("p99 of who am I beside it, times idle", grows),
    ]
    return Row("clean-up", lab.database, figures, [beside])


def _clean_up(service: Service, header: str) -> int:
    """Have the service delete what is too old; return how many rows it deleted."""
    path = ADMIN + "/maintenance/cleanup"
    cleaned = service.api.call("POST", path, Cookie=header).require(200).body["data"]
    return sum(cleaned.values())
