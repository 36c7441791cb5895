"""Signing in with a passkey beside the bare Flask route: start, and finish with ES256."""

import http.client
import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from typing import Any

from bench.accounts import username
from bench.api import Unexpected
from bench.lab import Lab, Scenario
from bench.load import Job, Request, render
from bench.report import Target
from bench.scenarios.requests import beside_bare
from bench.servers import Service
from tests.support.passkeys import Authenticator

START = "/api/v1/auth/passkeys/login/start"
FINISH = "/api/v1/auth/passkeys/login/finish"
REGISTER = "/api/v1/auth/passkeys/register"
# One account each: a login holds its account's row for a moment.
PASSKEYS = 64
STARTS_AT_ONCE = 8
# More than any run sends: each answer is good once, and a run ends when they are used up.
ANSWERS_PER_SECOND = 2500


def _start_job(lab: Lab, service: Service, clients: int) -> Job:
    raw = render("POST", START, {"conditional": True})
    return lab.job(service, clients, [Request("passkey-login-start", raw, 200, '"flow_id"')])


def _finish_job(lab: Lab, service: Service, clients: int) -> Job:
    """Finish logins that were started beforehand, with signatures made beforehand."""
    job = lab.job(service, clients, ())
    count = int((job.warmup + job.duration) * ANSWERS_PER_SECOND)
    authenticators = _authenticators(service)
    started = _started(service, count)
    requests = [
        _finish_request(flow, authenticators[number % len(authenticators)])
        for number, flow in enumerate(started)
    ]
    return replace(job, requests=requests, limit=count)


def _finish_request(flow: dict[str, Any], authenticator: Authenticator) -> Request:
    credential = authenticator.get(flow["public_key"])
    raw = render("POST", FINISH, {"flow_id": flow["flow_id"], "credential": credential})
    return Request("passkey-login-finish", raw, 200, '"authenticated"')


@cache
def _authenticators(service: Service) -> Sequence[Authenticator]:
    """Register a passkey for each of some accounts; return what holds them."""
    users = [username(500 + number) for number in range(PASSKEYS)]
    jars = service.api.login_all(users)
    return [_registered(service, cookies) for cookies in jars]


def _registered(service: Service, cookies: dict[str, str]) -> Authenticator:
    authenticator = Authenticator(service.origin)
    started = service.api.call("POST", f"{REGISTER}/start", {}, cookies).body["data"]
    body = {
        "flow_id": started["flow_id"],
        "credential": authenticator.create(started["public_key"]),
    }
    answer = service.api.call("POST", f"{REGISTER}/finish", body, cookies)
    if answer.status != 200:
        raise Unexpected(f"no passkey was registered: {answer.body}")
    return authenticator


def _started(service: Service, count: int) -> list[dict[str, Any]]:
    """Start so many logins over a few connections that stay open."""
    shares = [len(range(n, count, STARTS_AT_ONCE)) for n in range(STARTS_AT_ONCE)]
    with ThreadPoolExecutor(STARTS_AT_ONCE) as pool:
        return [flow for some in pool.map(_starting(service), shares) for flow in some]


def _starting(service: Service) -> Callable[[int], list[dict[str, Any]]]:
    def start(count: int) -> list[dict[str, Any]]:
        connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)
        flows = []
        for _ in range(count):
            connection.request("POST", START, "{}", {"Content-Type": "application/json"})
            flows.append(json.load(connection.getresponse())["data"])
        connection.close()
        return flows

    return start


SCENARIOS: tuple[Scenario, ...] = (
    Scenario(
        "passkey-login-start",
        "POST /auth/passkeys/login/start as conditional UI sends it, beside the bare route",
        beside_bare(_start_job),
        {"rate": Target(at_least=0.45)},
    ),
    Scenario(
        "passkey-login-finish",
        "POST /auth/passkeys/login/finish of 64 accounts, ES256, beside the bare route",
        beside_bare(_finish_job),
        {"rate": Target(at_least=0.2)},
    ),
)
