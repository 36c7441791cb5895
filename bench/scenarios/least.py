"""What requests cost at the least, beside the bare route: how much of a figure is the service's."""

import base64
import json
from collections.abc import Iterator, Sequence
from functools import partial
from hashlib import sha256
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from bench import least
from bench.lab import Lab, Scenario
from bench.least_database import ACCOUNTS, PRIVATE_KEY, credential_of, session_of
from bench.load import Request, render
from bench.report import Row
from bench.scenarios.requests import compared


def _cookie(account: int) -> str:
    session = session_of(account)
    return f"token={session}.{least.signature(session)}"


def _of_sessions(method: str, path: str, expect: str) -> Sequence[Request]:
    return [
        Request(path, render(method, path, Cookie=_cookie(account)), 200, expect)
        for account in range(ACCOUNTS)
    ]


def _second_steps() -> Sequence[Request]:
    waiting = {"flow_token": least.WAITING, "code": "000000"}
    return [
        Request(
            "second-step",
            render("POST", "/second-step", waiting | {"user_id": account}),
            200,
            '"authenticated"',
        )
        for account in range(ACCOUNTS)
    ]


def _passkey_start() -> Sequence[Request]:
    raw = render("POST", "/passkey-start", {"conditional": True})
    return [Request("passkey-start", raw, 200, '"flow_id"')]


def _passkey_finishes() -> Sequence[Request]:
    return [
        Request(
            "passkey-finish",
            render(
                "POST",
                "/passkey-finish",
                {"flow_id": least.WAITING, "credential": _assertion(account)},
            ),
            200,
            '"authenticated"',
        )
        for account in range(ACCOUNTS)
    ]


def _assertion(account: int) -> dict[str, Any]:
    """Return what a browser answers for the passkey of an account, as the service is sent it."""
    said = {"type": "webauthn.get", "challenge": least.CHALLENGE, "origin": least.ORIGIN}
    client_data = json.dumps(said | {"crossOrigin": False}, separators=(",", ":")).encode()
    data = sha256(least.RP_ID.encode()).digest() + bytes([least.PRESENT_AND_VERIFIED, 0, 0, 0, 0])
    signed = data + sha256(client_data).digest()
    response = {
        "clientDataJSON": client_data,
        "authenticatorData": data,
        "signature": PRIVATE_KEY.sign(signed, ec.ECDSA(hashes.SHA256())),
        "userHandle": bytes(32),
    }
    credential_id = credential_of(account)
    return {
        "id": credential_id,
        "rawId": credential_id,
        "type": "public-key",
        "authenticatorAttachment": "platform",
        "clientExtensionResults": {},
        "response": {name: _base64url(value) for name, value in response.items()},
    }


def _base64url(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _beside_bare(
    lab: Lab, database: str, scenario: Scenario, *, requests: Sequence[Request]
) -> Iterator[Row]:
    server = lab.least(database)
    for clients in lab.options.clients:
        job = lab.job(server, clients, requests)
        bare, runs = lab.pairs(
            partial(lab.measure_bare, clients), partial(lab.measure, server, job)
        )
        yield Row(f"bare (for {scenario.name})", "-", clients, bare)
        yield compared(scenario, database, clients, bare, runs)


SCENARIOS = tuple(
    Scenario(
        f"least-{name}",
        f"the least that {what} can cost, by hand in one Flask route, beside the bare one",
        partial(_beside_bare, requests=requests),
        is_opt_in=True,
    )
    for name, what, requests in (
        ("me", "GET /auth/me", _of_sessions("GET", "/me", '"username"')),
        ("sessions", "GET /auth/sessions", _of_sessions("GET", "/sessions", '"user_agent"')),
        ("refresh", "POST /auth/refresh", _of_sessions("POST", "/refresh", '"expires_in"')),
        ("totp", "a login's second step with a code of the app", _second_steps()),
        ("passkey-start", "the start of a passkey login", _passkey_start()),
        ("passkey-finish", "the end of a passkey login, ES256", _passkey_finishes()),
    )
)
