"""A plain HTTP client to prepare runs; the load itself comes from `bench.client`."""

import http.client
import json
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.cookies import SimpleCookie
from pathlib import Path
from types import MappingProxyType
from typing import Any

PASSWORD = "correct horse battery staple"
LOGINS_AT_ONCE = 32


class Unexpected(Exception):
    """The service gave an answer with which a run cannot be prepared."""


@dataclass(frozen=True)
class Answer:
    """Status, decoded JSON body and cookies."""

    status: int
    body: Any
    cookies: dict[str, str]


class Api:
    """Calls the service on a local port."""

    def __init__(self, port: int, log: Path) -> None:
        self._port = port
        self._log = log

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        cookies: dict[str, str] | None = None,
        more_headers: Mapping[str, str] = MappingProxyType({}),
    ) -> Answer:
        """Send one request and return its answer, whatever its status."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=180)
        headers = dict(more_headers)
        if body is not None:
            headers["Content-Type"] = "application/json"
        if cookies:
            headers["Cookie"] = cookie_header(cookies)
        content = None if body is None else json.dumps(body)
        connection.request(method, path, content, headers)
        response = connection.getresponse()
        raw = response.read()
        jar = SimpleCookie()
        for line in response.headers.get_all("Set-Cookie") or []:
            jar.load(line)
        connection.close()
        is_json = "json" in (response.headers.get("Content-Type") or "")
        morsels = {name: morsel.value for name, morsel in jar.items()}
        return Answer(response.status, json.loads(raw) if is_json else raw, morsels)

    def setup(self, username: str) -> None:
        """Create the first administrator."""
        account = {"username": username, "email": email(username), "password": PASSWORD}
        self.require(self.call("POST", "/api/v1/auth/setup", account), 201)

    def login(self, username: str) -> dict[str, str]:
        """Sign in and return the cookies."""
        answer = self.call("POST", "/api/v1/auth/login", credentials(username))
        self.require(answer, 200)
        return answer.cookies

    def login_all(self, usernames: Iterable[str]) -> list[dict[str, str]]:
        """Sign in many accounts concurrently, since each login takes the response-time floor."""
        with ThreadPoolExecutor(LOGINS_AT_ONCE) as pool:
            return list(pool.map(self.login, usernames))

    def require(self, answer: Answer, status: int) -> None:
        """Raise Unexpected unless the answer has this status."""
        if answer.status != status:
            log = self._log.read_text()[-3000:] if answer.status >= 500 else ""
            raise Unexpected(f"{log}status {answer.status} instead of {status}: {answer.body}")


def email(username: str) -> str:
    """Return the e-mail address of a bench account."""
    return f"{username}@bench.example.com"


def credentials(username: str, password: str = PASSWORD) -> dict[str, str]:
    """Return the body of a login."""
    return {"identifier": username, "password": password}


def cookie_header(cookies: dict[str, str]) -> str:
    """Return the value of a Cookie header."""
    return "; ".join(f"{name}={value}" for name, value in cookies.items())
