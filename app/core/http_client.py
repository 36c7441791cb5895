"""Requests to third-party servers, at URLs that an administrator or a fetched document supplies.

Invariants, against SSRF: no internal address is reached unless configured, because every address
that a name resolves to is checked, and the connection goes to a checked address, not to the name;
redirects are not followed; a request ends by its deadline, however slowly its bytes arrive, and
never buffers more than its limit; TLS is verified; the environment's proxies, cookies and passwords
are not used.
"""

import copy
import http.client
import io
import logging
import math
import socket
import ssl
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar
from urllib.parse import urlsplit

import requests
import urllib3
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection

import app
from app.core import addresses, connecting
from app.core.config import Network
from app.core.connecting import AddressInfo, Exchange

log = logging.getLogger(__name__)

USER_AGENT = f"Gatehouse/{app.__version__}"
MAX_RESPONSE_BYTES = 1024 * 1024
CHUNK_BYTES = 64 * 1024
# Per address of a host, so that one that does not answer leaves time for the next.
CONNECT_SECONDS = 4.0

# What the libraries below raise; UnicodeError is for odd characters in a host name or a header.
UNREADABLE = (urllib3.exceptions.HTTPError, http.client.HTTPException, OSError, UnicodeError)

Resolve = Callable[[str, int], list[AddressInfo]]


class Refused(requests.RequestException):
    """A request that is not sent, or a response that is not read; the text holds no secret."""


class TookTooLong(Refused, requests.Timeout):
    """The response was not complete in time."""


@dataclass(frozen=True)
class Limits:
    """How long one request may take in total, and how large its response may be, decompressed.

    All requests of one conversation together may take `total_seconds`.
    """

    seconds: float = 15.0
    total_seconds: float = 30.0
    max_response_bytes: int = MAX_RESPONSE_BYTES


class HttpClient:
    """Sends requests to permitted servers, within limits.

    `internal` are the operator's own networks that may be reached, too. `allow_loopback` is the
    development switch: it permits this machine, over plain HTTP as well, if the URL's host is
    loopback as written. `tls` replaces this machine's trust store, `resolve` the system's resolver.
    """

    def __init__(
        self,
        *,
        internal: Collection[Network] = (),
        allow_loopback: bool = False,
        limits: Limits | None = None,
        tls: ssl.SSLContext | None = None,
        resolve: Resolve = connecting.look_up,
    ) -> None:
        self.limits = limits or Limits()
        self.internal = internal
        self.allow_loopback = allow_loopback
        # Shared by all conversations, since loading the trust store is slow.
        self._tls = cache(lambda: tls or connecting.verifying_tls())
        self._resolve = resolve
        self._dns = connecting.DnsLookups()
        self._ends_at = math.inf

    @property
    def tls(self) -> ssl.SSLContext:
        """Return the context that verifies server certificates."""
        return self._tls()

    def conversation(self) -> "HttpClient":
        """Return a copy for a sequence of requests that share one deadline."""
        own = copy.copy(self)
        own._ends_at = time.monotonic() + self.limits.total_seconds
        return own

    def seconds_left(self) -> float:
        """Return how long the next request may take; at 0 or less, none may be sent."""
        return min(self.limits.seconds, self._ends_at - time.monotonic())

    def allows(self, url: str) -> bool:
        """Return whether the URL's text permits a request; its address is checked later."""
        try:
            self._check(url)
        except Refused:
            return False
        return True

    def guard(self, session: requests.Session) -> None:
        """Make the session send all its requests through here."""
        session.trust_env = False
        session.headers.clear()
        session.headers.update({"User-Agent": USER_AGENT, "Accept": "application/json"})
        session.adapters.clear()
        session.mount("", GuardedAdapter(self))

    def get(
        self,
        url: str,
        *,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> requests.Response:
        """Return the complete response, whatever its status; `params` are added to the query.

        Raises: requests.RequestException.
        """
        with requests.Session() as session:
            self.guard(session)
            return session.get(url, params=params, headers=headers)

    def attempt(self, url: str) -> "Attempt":
        """Return the state of one request to this URL, which is not sent yet.

        Raises: Refused.
        """
        return Attempt(self, *self._check(url))

    def resolve(self, host: str, port: int, seconds: float) -> list[AddressInfo]:
        """Resolve a host name within `seconds`, without blocking the event loop.

        Raises: OSError, UnicodeError.
        """
        return self._dns.within(seconds, lambda: self._resolve(host, port))

    def _check(self, url: str) -> tuple[str, str, int]:
        """Return scheme, host and port of a URL that may be requested.

        Raises: Refused.
        """
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            raise Refused("the URL is malformed") from None
        host = parts.hostname or ""
        if not host or parts.username is not None or parts.fragment:
            raise Refused("the URL has no host, or has a user name or a fragment")
        if not url.isprintable() or " " in url:
            raise Refused("the URL has spaces or control characters")
        if parts.scheme == "https":
            return parts.scheme, host, port or 443
        if parts.scheme == "http" and self.allow_loopback and addresses.is_loopback_name(host):
            return parts.scheme, host, port or 80
        raise Refused(f"{host}: the URL must be https")


class GuardedAdapter(HTTPAdapter):
    """The transport of a guarded session, which reads each response to its end."""

    def __init__(self, http_client: HttpClient) -> None:
        super().__init__()
        self._http_client = http_client

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,  # noqa: ARG002
        timeout: Any = None,  # noqa: ARG002
        verify: Any = True,  # noqa: ARG002
        cert: Any = None,  # noqa: ARG002
        proxies: Any = None,  # noqa: ARG002
    ) -> requests.Response:
        """Send a request; the caller's timeout, verification and proxies are ignored.

        Raises: Refused, and its subclass TookTooLong.
        """
        attempt = self._http_client.attempt(request.url or "")
        # The libraries' messages may repeat the URL's query, so they are not passed on.
        try:
            with attempt.watched():
                answer = attempt.send(request)
                response = self.build_response(request, answer)
                response.raw = io.BytesIO(attempt.read(answer))
        except UNREADABLE as error:
            raise attempt.failure(error) from None
        if response.is_redirect:
            raise Refused(f"{attempt.host}: redirects are not followed")
        return response


class Attempt(Exchange):
    """One request: its connection, and its deadline."""

    def __init__(self, http_client: HttpClient, scheme: str, host: str, port: int) -> None:
        super().__init__()
        self.host = host
        self._http_client = http_client
        self._scheme = scheme
        self._port = port
        self._ends_at = time.monotonic() + http_client.seconds_left()

    def send(self, request: requests.PreparedRequest) -> urllib3.BaseHTTPResponse:
        """Connect, send, and return the response once its headers are read."""
        return self._pool().urlopen(
            request.method or "GET",
            request.path_url,
            body=request.body,
            headers=request.headers,
            redirect=False,
            retries=False,
            preload_content=False,
            decode_content=False,
            timeout=urllib3.Timeout(connect=self._seconds_left(), read=self._seconds_left()),
        )

    def read(self, answer: urllib3.BaseHTTPResponse) -> bytes:
        """Return the whole body, decompressed chunk by chunk.

        Raises: Refused when it exceeds the limit; TookTooLong.
        """
        body = bytearray()
        try:
            for piece in answer.stream(CHUNK_BYTES, decode_content=True):
                body += piece
                if len(body) > self._http_client.limits.max_response_bytes:
                    raise Refused(f"{self.host}: the answer is too large")
        finally:
            answer.close()
        # Without a Content-Length, a body that was cut off at the deadline looks complete.
        self._seconds_left()
        return bytes(body)

    def connect(self) -> socket.socket:
        """Return a connection to a checked address.

        Raises: OSError, Refused.
        """
        connection = connecting.connect_to_first(
            self._allowed_addresses(), address_seconds=CONNECT_SECONDS, ends_at=self._ends_at
        )
        connection.settimeout(self._seconds_left())
        self.follow(connection)
        return connection

    def failure(self, error: Exception) -> Refused:
        """Return what may be reported of an error; its own text may reveal too much."""
        cause = _innermost(error)
        if isinstance(cause, Refused):
            return cause
        if self.is_over or isinstance(cause, TimeoutError | urllib3.exceptions.TimeoutError):
            return self._late()
        if isinstance(cause, ssl.SSLCertVerificationError):
            return Refused(f"{self.host}: the certificate is not valid: {cause.verify_message}")
        if isinstance(cause, socket.gaierror):
            return Refused(f"{self.host}: its name could not be found")
        return Refused(f"{self.host}: no answer that can be read ({type(cause).__name__})")

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Cut the connection at the deadline: a socket's own timeout restarts with every byte."""
        timer = threading.Timer(self._seconds_left(), self.abort)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            self.close()

    def _pool(self) -> urllib3.HTTPConnectionPool:
        if self._scheme == "https":
            tls = self._http_client.tls
            return _HttpsPool(self.host, self._port, attempt=self, ssl_context=tls)
        return _HttpPool(self.host, self._port, attempt=self)

    def _allowed_addresses(self) -> list[AddressInfo]:
        """Return the addresses of the host.

        Raises: Refused if even one is internal: a name that mixes both kinds is an attack.
        """
        found = self._http_client.resolve(self.host, self._port, self._seconds_left())
        for *_, address in found:
            if not self._is_allowed(str(address[0])):
                log.warning(
                    "%s stands for %s, which is internal (see GATEHOUSE_PROVIDER_NETWORKS)",
                    self.host,
                    address[0],
                )
                raise Refused(f"{self.host}: the address is internal")
        return found

    def _is_allowed(self, text: str) -> bool:
        try:
            address = addresses.parse(text)
        except ValueError:
            return False
        if self._http_client.allow_loopback and addresses.is_loopback_name(self.host):
            return address.is_loopback
        if addresses.is_public(address):
            return True
        if addresses.is_always_forbidden(address):
            return False
        return any(address in network for network in self._http_client.internal)

    def _seconds_left(self) -> float:
        left = self._ends_at - time.monotonic()
        if left <= 0 or self.is_over:
            raise self._late()
        return left

    def _late(self) -> TookTooLong:
        return TookTooLong(f"{self.host}: the answer was not complete in time")


class _Http(HTTPConnection):
    """A connection to a checked address."""

    def __init__(self, *arguments: Any, attempt: Attempt, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self._attempt = attempt

    def _new_conn(self) -> socket.socket:
        return self._attempt.connect()


class _Https(_Http, HTTPSConnection):
    """The same over TLS; the certificate must match the host name."""


class _HttpPool(urllib3.HTTPConnectionPool):
    ConnectionCls: ClassVar[type[HTTPConnection]] = _Http  # type: ignore[misc]


class _HttpsPool(urllib3.HTTPSConnectionPool):
    ConnectionCls: ClassVar[type[HTTPSConnection]] = _Https  # type: ignore[misc]


def _innermost(error: Exception) -> Exception:
    """Return the error that the libraries wrapped; our own Refused is, too, being an OSError."""
    while error.args and isinstance(error.args[-1], Exception):
        error = error.args[-1]
    return error
