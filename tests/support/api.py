"""A test client that checks every answer against what the specification says of all answers."""

import json
import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from flask import Flask
from werkzeug.http import dump_cookie, parse_cookie
from werkzeug.test import Client as WerkzeugClient
from werkzeug.test import TestResponse

from app.core.errors import ErrorCode
from tests.support import openapi
from tests.support.leaks import watch

BASE = "/api/v1"
ORIGIN = "http://localhost"
# Where a person may be asked with a page.
ASKING = f"{BASE}/auth/external-auth/email-verification/confirm"
KNOWN_CODES = frozenset(code.value for code in ErrorCode)
SECURITY_HEADERS = {
    "X-Frame-Options": "SAMEORIGIN",
    "Referrer-Policy": "strict-origin-when-cross-origin",
    "X-Content-Type-Options": "nosniff",
}
# Successful answers here are not enveloped.
NOT_ENVELOPED = (
    "/health",
    "/health/metrics",
    f"{BASE}/openapi.json",
    f"{BASE}/docs",
    f"{BASE}/auth/export",
)
CACHEABLE = (
    f"{BASE}/auth/events/storage",
    f"{BASE}/public/frontend-config",
    f"{BASE}/docs",
    f"{BASE}/openapi.json",  # tests/contract/test_envelope.py
)
# Redirects from a URL that carries a secret.
SECRETIVE = (f"{BASE}/auth/contact-verification/confirm", f"{BASE}/auth/external-auth/")
# The cookies that go to /api/v1/auth only.
NARROW = frozenset({"service_refresh", "service_device"})
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True)
class SetCookie:
    """One Set-Cookie header; attribute names are in lower case, a valueless attribute is True."""

    value: str
    attributes: Mapping[str, str | bool]


@dataclass(frozen=True)
class Answer:
    """The answer to one request."""

    method: str
    path: str
    status: int
    headers: Any
    body: bytes

    @cached_property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def code(self) -> str:
        return cast("str", self.json["code"])

    @property
    def data(self) -> Any:
        return self.json["data"]

    @property
    def retry_after(self) -> int:
        return int(self.headers["Retry-After"])

    @property
    def set_cookies(self) -> dict[str, SetCookie]:
        """The Set-Cookie headers by cookie name."""
        found = {}
        for header in self.headers.getlist("Set-Cookie"):
            pair, *attributes = header.split(";")
            name, _, value = pair.partition("=")
            assert name not in found, f"{name} is set twice"
            split = (attribute.strip().partition("=") for attribute in attributes)
            found[name] = SetCookie(value, {k.lower(): v if eq else True for k, eq, v in split})
        return found

    def ok(self, status: int = 200) -> Any:
        """Assert success with this status; return the data."""
        assert (self.status, self.code) == (status, "success"), self
        return self.data

    def fails(self, status: int, code: str) -> "Answer":
        """Assert this error; return the answer."""
        assert (self.status, self.code) == (status, code), self
        return self

    def __str__(self) -> str:
        return f"{self.method} {self.path} -> {self.status} {self.body[:2000]!r}"


class Verbs(ABC):
    """HTTP verbs on top of a client's `call`."""

    def get(self, path: str, **options: Any) -> Answer:
        return self.call("GET", path, **options)

    def post(self, path: str, body: Any = None, **options: Any) -> Answer:
        return self.call("POST", path, body, **options)

    def put(self, path: str, body: Any = None, **options: Any) -> Answer:
        return self.call("PUT", path, body, **options)

    def patch(self, path: str, body: Any = None, **options: Any) -> Answer:
        return self.call("PATCH", path, body, **options)

    def delete(self, path: str, body: Any = None, **options: Any) -> Answer:
        return self.call("DELETE", path, body, **options)

    @abstractmethod
    def call(self, method: str, path: str, body: Any = None, **options: Any) -> Answer:
        """Send a request and return its answer."""


class ApiClient(Verbs):
    """Acts like a script: no Origin, no Sec-Fetch headers; cookies are kept.

    Paths are relative to /api/v1 unless they start with /health or /api/. `headers` are sent with
    every request.
    """

    def __init__(self, app: Flask, headers: Mapping[str, str] | None = None) -> None:
        self.app = app
        self.headers = dict(headers or {})
        self._client: WerkzeugClient = app.test_client()

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str | None] | None = None,
        address: str | None = None,
        described: bool = True,
        **options: Any,
    ) -> Answer:
        """Send a request and check what every answer must satisfy.

        `body` is sent as JSON, bytes as they are. A header of None is left out. `address` is the
        peer's IP address. `described=False` skips the check against the API description, which
        does not cover requests that are not valid HTTP. `options` go to Werkzeug's client.
        """
        full = path if path.startswith(("/api/", "/health")) else BASE + path
        sent: dict[str, str | None] = {**self.headers, **self._own_headers(method)}
        if isinstance(body, bytes):
            options["data"] = body
            sent["Content-Type"] = "application/json"
        elif body is not None:
            options["data"] = json.dumps(body)
            sent["Content-Type"] = "application/json"
        sent |= headers or {}
        watch.note_body(body)
        watch.note_members(options.get("query_string"))
        if address is not None:
            options["environ_overrides"] = {
                **options.get("environ_overrides", {}),
                "REMOTE_ADDR": address,
            }
        response = self._client.open(
            full,
            method=method,
            headers=[(name, value) for name, value in sent.items() if value is not None],
            buffered=True,
            **options,
        )
        answer = _checked(method, full, response)
        if described:
            openapi.check(self.app, method, full.partition("?")[0], answer)
        return answer

    def _own_headers(self, method: str) -> dict[str, str]:
        return {}

    # --- cookies -----------------------------------------------------------------------------

    @property
    def cookies(self) -> dict[str, str]:
        """The cookies it would send to /api/v1/auth."""
        environ = self._client.get_cookie
        names = ("service_access", "service_refresh", "service_csrf")
        paths = {"service_refresh": f"{BASE}/auth"}
        found = ((name, environ(name, path=paths.get(name, "/"))) for name in names)
        return {name: cookie.value for name, cookie in found if cookie is not None}

    @property
    def device(self) -> str | None:
        """What the browser is known by."""
        cookie = self._client.get_cookie("service_device", path=f"{BASE}/auth")
        return cookie.value if cookie else None

    @property
    def access_token(self) -> str:
        return self.cookies["service_access"]

    @property
    def refresh_token(self) -> str:
        return self.cookies["service_refresh"]

    def set_cookie(self, name: str, value: str) -> None:
        path = f"{BASE}/auth" if name in NARROW else "/"
        self._client.set_cookie(name, value, path=path)

    def drop_cookie(self, name: str) -> None:
        path = f"{BASE}/auth" if name in NARROW else "/"
        self._client.delete_cookie(name, path=path)

    def forget(self) -> None:
        """Drop every cookie."""
        for name in self.cookies:
            self.drop_cookie(name)

    # --- variants ----------------------------------------------------------------------------

    def twin(self) -> "ApiClient":
        """Return another client with the same cookies and headers, as if the device was cloned."""
        copy = type(self)(self.app, self.headers)
        for name, value in self.cookies.items():
            copy.set_cookie(name, value)
        return copy

    def stranger(self) -> "ApiClient":
        """Return a client without cookies."""
        return type(self)(self.app)

    def bearer(self, token: str | None = None) -> "ApiClient":
        """Return a client that sends the access token as a bearer token, and no cookies."""
        return ApiClient(self.app, {"Authorization": f"Bearer {token or self.access_token}"})

    def browser(self) -> "BrowserClient":
        """Return a page of this site with the same cookies."""
        page = BrowserClient(self.app, self.headers)
        for name, value in self.cookies.items():
            page.set_cookie(name, value)
        return page

    # --- flows -------------------------------------------------------------------------------

    def sign_up_admin(
        self,
        username: str = "admin",
        email: str = "admin@example.com",
        password: str = "correct horse battery",
        **options: Any,
    ) -> Answer:
        """Create the first administrator."""
        body = {"username": username, "email": email, "password": password}
        return self.post("/auth/setup", body, **options)

    def login(self, who: Any, password: str | None = None, **options: Any) -> Answer:
        """Log in a user of the factories, or an identifier with a password."""
        identifier = who if isinstance(who, str) else who.username
        body = {
            "identifier": identifier,
            "password": who.password if password is None else password,
        }
        return self.post("/auth/login", body, **options)

    def refresh(self, **options: Any) -> Answer:
        return self.post("/auth/refresh", **options)

    def me(self, **options: Any) -> Answer:
        return self.get("/auth/me", **options)


class BrowserClient(ApiClient):
    """Sends what a page of this site sends: Origin, Sec-Fetch headers and the CSRF token."""

    def _own_headers(self, method: str) -> dict[str, str]:
        headers = {
            "Sec-Fetch-Site": "same-origin",
            "Sec-Fetch-Mode": "cors",
            "Sec-Fetch-Dest": "empty",
            "Referer": f"{ORIGIN}/login",
        }
        if method not in SAFE_METHODS:
            headers["Origin"] = ORIGIN
            if token := self.cookies.get("service_csrf"):
                headers["X-CSRF-Token"] = token
        return headers


def _checked(method: str, path: str, response: TestResponse) -> Answer:
    answer = Answer(method, path, response.status_code, response.headers, response.data)
    bare = path.partition("?")[0]
    watch.note_answer(answer.body, (cookie.value for cookie in answer.set_cookies.values()))
    check_headers(answer, bare)
    if method != "HEAD" and is_enveloped(bare, answer):
        check_envelope(answer)
    return answer


def check_headers(answer: Answer, path: str) -> None:
    """Assert the headers that every answer carries."""
    is_secretive = path.startswith(SECRETIVE) and answer.status in {302, 303}
    expected = SECURITY_HEADERS | ({"Referrer-Policy": "no-referrer"} if is_secretive else {})
    if is_page(answer):
        expected |= {"X-Frame-Options": "DENY", "Referrer-Policy": "strict-origin"}
    for name, value in expected.items():
        assert answer.headers.getlist(name) == [value], f"{name}: {answer}"
    [request_id] = answer.headers.getlist("X-Request-ID")
    assert uuid.UUID(request_id).version == 4
    is_success = answer.status < 400
    is_cacheable = path.startswith(CACHEABLE) or "/avatar/" in path
    if path.startswith(f"{BASE}/") and not (is_success and is_cacheable):
        assert answer.headers.getlist("Cache-Control") == ["no-store"], answer
    if answer.status == 405:
        assert answer.headers["Allow"], answer
    if answer.status in {429, 503}:
        assert answer.retry_after >= 1, answer


def is_page(answer: Answer) -> bool:
    """Return whether an address of the API asks a person."""
    return answer.status == 200 and answer.path.startswith(ASKING)


def is_enveloped(path: str, answer: Answer) -> bool:
    """Return whether the answer must be an envelope."""
    if is_page(answer):
        return False
    if 300 <= answer.status < 400 or answer.status == 204:
        return False
    if answer.status >= 400:
        return True
    if path in NOT_ENVELOPED or path.startswith(f"{BASE}/docs/"):
        return False
    content_type: str = answer.headers.get("Content-Type", "")
    return content_type.startswith("application/json")


def check_envelope(answer: Answer) -> None:
    """Assert exactly the four keys of an envelope, with consistent values."""
    assert answer.headers["Content-Type"] == "application/json", answer
    body = answer.json
    assert list(body) == ["code", "msg", "data", "error"], answer
    assert body["code"] in KNOWN_CODES, answer
    assert body["error"] is None, answer
    if answer.status < 400:
        assert (body["code"], body["msg"]) == ("success", ""), answer
    else:
        assert body["code"] != "success", answer
        assert isinstance(body["msg"], str), answer
        assert body["msg"], answer
        assert body["data"] in (None, {"credential_unknown": True}), answer


def cookie_header(**cookies: str) -> dict[str, str]:
    """Return a Cookie header with these cookies, whatever their paths."""
    return {"Cookie": "; ".join(dump_cookie(k, v).partition(";")[0] for k, v in cookies.items())}


__all__ = ["Answer", "ApiClient", "BrowserClient", "Verbs", "cookie_header", "parse_cookie"]
