"""A plain HTTP client to prepare runs; the load itself comes from `bench.client`."""

import http.client
import json
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.cookies import SimpleCookie
from typing import Any

PASSWORD = "correct horse battery staple"
LOGIN = "/api/v1/auth/login"
LOGINS_AT_ONCE = 32


class Unexpected(Exception):
    """The service gave an answer with which a run cannot be prepared."""


@dataclass(frozen=True)
class Answer:
    """Status, decoded JSON body and cookies."""

    status: int
    body: Any
    cookies: dict[str, str]

    def require(self, status: int) -> "Answer":
        """Return itself. Raises: Unexpected."""
        if self.status != status:
            raise Unexpected(f"status {self.status} instead of {status}: {self.body}")
        return self


class Api:
    """Calls a service on a local port."""

    def __init__(self, port: int) -> None:
        self._port = port

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """Send one request and return its answer, whatever its status."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=180)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if body is not None:
            sent["Content-Type"] = "application/json"
        connection.request(method, path, None if body is None else json.dumps(body), sent)
        response = connection.getresponse()
        raw = response.read()
        jar = SimpleCookie()
        for line in response.headers.get_all("Set-Cookie") or []:
            jar.load(line)
        connection.close()
        is_json = "json" in (response.headers.get("Content-Type") or "")
        cookies = {name: morsel.value for name, morsel in jar.items()}
        return Answer(response.status, json.loads(raw) if is_json else raw, cookies)

    def setup(self, username: str) -> None:
        """Create the first administrator."""
        account = {"username": username, "email": email(username), "password": PASSWORD}
        self.call("POST", "/api/v1/auth/setup", account).require(201)

    def login(self, username: str) -> dict[str, str]:
        """Sign in and return the cookies."""
        return self.call("POST", LOGIN, credentials(username)).require(200).cookies

    def login_all(self, usernames: Iterable[str]) -> list[dict[str, str]]:
        """Sign in many accounts concurrently, since each login takes the response-time floor."""
        with ThreadPoolExecutor(LOGINS_AT_ONCE) as pool:
            return list(pool.map(self.login, usernames))


def email(username: str) -> str:
    """Return the e-mail address of a bench account."""
    return f"{username}@bench.example.com"


def credentials(username: str) -> dict[str, str]:
    """Return the body of a login."""
    return {"identifier": username, "password": PASSWORD}


def cookie_header(cookies: dict[str, str]) -> str:
    """Return the value of a Cookie header."""
    return "; ".join(f"{name}={value}" for name, value in cookies.items())
