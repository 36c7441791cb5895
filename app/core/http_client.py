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
import os
import socket
import ssl
import threading
import time
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any, TypeVar
from urllib.parse import SplitResult, urlsplit

import certifi
import gevent
import requests
import urllib3
from cachetools import LRUCache, TTLCache
from requests.adapters import HTTPAdapter
from urllib3.exceptions import ConnectTimeoutError, NewConnectionError

import app
from app.core import addresses
from app.core.clock import Clock
from app.core.config import Network

T = TypeVar("T")

log = logging.getLogger(__name__)

USER_AGENT = f"Gatehouse/{app.__version__}"
MAX_RESPONSE_BYTES = 1024 * 1024
CHUNK_BYTES = 64 * 1024
# Per address of a host, so that one that does not answer leaves time for the next.
CONNECT_SECONDS = 4.0
CACHE_TTL = timedelta(minutes=5)
MAX_CACHED = 1024

# What the libraries below raise; UnicodeError is for odd characters in a host name or a header.
UNREADABLE = (urllib3.exceptions.HTTPError, http.client.HTTPException, OSError, UnicodeError)

Resolve = Callable[[str, int], list[str]]


def look_up(host: str, port: int) -> list[str]:
    """Return the addresses of a host, in the system's order of preference.

    Raises: OSError; UnicodeError for what cannot be a host name.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class RequestRefused(requests.RequestException):
    """A request that is not sent, or a response that is not read; the text holds no secret."""


class TookTooLong(RequestRefused, requests.Timeout):
    """The response was not complete in time."""


@dataclass(frozen=True)
class ResponseLimits:
    """How long one request may take in total, and how large its response may be, decompressed.

    All requests of one conversation together may take `total_seconds`.
    """

    seconds: float = 15.0
    total_seconds: float = 30.0
    max_response_bytes: int = MAX_RESPONSE_BYTES


class FetchCache:
    """Fetched values by key, each fetched when it is asked for and is missing or stale.

    Of concurrent callers for one key one fetches, and the others wait. Failures are not kept: the
    next caller tries again.
    """

    def __init__(self, clock: Clock, ttl: timedelta = CACHE_TTL) -> None:
        self._known: TTLCache[Hashable, Any] = TTLCache(
            MAX_CACHED, ttl.total_seconds(), timer=clock.monotonic
        )
        # Losing one that is in use costs a second fetch, no more.
        self._fetching: LRUCache[Hashable, threading.Lock] = LRUCache(MAX_CACHED)
        self._lock = threading.Lock()

    def get(
        self, key: Hashable, fetch: Callable[[], T], *, seconds: float, other_than: T | None = None
    ) -> T:
        """Return the value of a key, fetching it unless a fresh one is known.

        `seconds` limits the wait for another caller's fetch. A caller that found something missing
        in a value passes it as `other_than`, and gets one fetched later.
        Raises: whatever `fetch` does; TimeoutError.
        """
        with self._lock:
            found: T | None = self._known.get(key)
            fetching = self._fetching.setdefault(key, threading.Lock())
        if found is not None and found is not other_than:
            return found
        if not fetching.acquire(timeout=max(0.0, seconds)):
            raise TimeoutError
        try:
            with self._lock:
                found = self._known.get(key)
            if found is None or found is other_than:
                found = fetch()
                with self._lock:
                    self._known[key] = found
            return found
        finally:
            fetching.release()


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
        limits: ResponseLimits | None = None,
        tls: ssl.SSLContext | None = None,
        resolve: Resolve = look_up,
        clock: Clock | None = None,
    ) -> None:
        self.limits = limits or ResponseLimits()
        self.internal = internal
        self.allow_loopback = allow_loopback
        # Shared by all conversations, since loading the trust store is slow.
        self._tls = cache(lambda: tls or verifying_tls())
        self._resolve = resolve
        # Of what was fetched, for all conversations.
        self.cache = FetchCache(clock or Clock())
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
            self.check(url)
        except RequestRefused:
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

    def check(self, url: str) -> SplitResult:
        """Return the parts of a URL that may be requested.

        Raises: RequestRefused.
        """
        try:
            parts = urlsplit(url)
            _ = parts.port
        except ValueError:
            raise RequestRefused("the URL is malformed") from None
        if not parts.hostname or parts.username is not None or parts.fragment:
            raise RequestRefused("the URL has no host, or has a user name or a fragment")
        if not url.isprintable() or " " in url:
            raise RequestRefused("the URL has spaces or control characters")
        is_local = self.allow_loopback and addresses.is_loopback_name(parts.hostname)
        if parts.scheme == "https" or (parts.scheme == "http" and is_local):
            return parts
        hint = ""
        if addresses.is_loopback_name(parts.hostname):
            hint = ", unless GATEHOUSE_ALLOW_LOOPBACK_HTTP is on"
        raise RequestRefused(f"{parts.hostname}: the URL must be https{hint}")

    def allowed_addresses(self, host: str, port: int) -> list[str]:
        """Return the addresses of a host.

        Raises: OSError, UnicodeError; RequestRefused if even one address is internal: a name that
        mixes both kinds is an attack.
        """
        found = self._resolve(host, port)
        for address in found:
            if not self._is_allowed(host, address):
                log.warning(
                    "%s stands for %s, which is internal (see GATEHOUSE_PROVIDER_NETWORKS)",
                    host,
                    address,
                )
                raise RequestRefused(f"{host}: the address is internal")
        return found

    def _is_allowed(self, host: str, text: str) -> bool:
        try:
            address = addresses.parse(text)
        except ValueError:
            return False
        if self.allow_loopback and addresses.is_loopback_name(host):
            return address.is_loopback
        if addresses.is_public(address):
            return True
        if addresses.is_always_forbidden(address):
            return False
        return any(address in network for network in self.internal)


class GuardedAdapter(HTTPAdapter):
    """The transport of a guarded session, which reads each response to its end."""

    def __init__(self, client: HttpClient) -> None:
        super().__init__()
        self._client = client

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

        Raises: RequestRefused, and its subclass TookTooLong.
        """
        url = self._client.check(request.url or "")
        seconds = max(0.0, self._client.seconds_left())
        ends_at = time.monotonic() + seconds
        try:
            # A socket's own timeout restarts with every byte; this one also limits the look-up.
            # It raises an OSError, at which the libraries close the connection.
            with gevent.Timeout(seconds, TimeoutError):
                response = self._exchange(request, url, ends_at)
        except UNREADABLE as error:
            # The libraries' messages may repeat the URL's query, so they are not passed on.
            raise _refused(url, error) from None
        if response.is_redirect:
            raise RequestRefused(f"{url.hostname}: redirects are not followed")
        return response

    def _exchange(
        self, request: requests.PreparedRequest, url: SplitResult, ends_at: float
    ) -> requests.Response:
        """Ask the first address that accepts a connection."""
        port = url.port or (443 if url.scheme == "https" else 80)
        failure: Exception = OSError("its name has no address")
        for address in self._client.allowed_addresses(url.hostname or "", port):
            if (left := ends_at - time.monotonic()) <= 0:
                raise _late(url)
            timeout = urllib3.Timeout(connect=min(CONNECT_SECONDS, left), read=left)
            try:
                with self._pool(url, address, port, timeout) as pool:
                    return self._answer(request, url, pool, ends_at)
            except (NewConnectionError, ConnectTimeoutError) as error:
                failure = error
        raise failure

    def _pool(
        self, url: SplitResult, address: str, port: int, timeout: urllib3.Timeout
    ) -> urllib3.HTTPConnectionPool:
        if url.scheme == "http":
            return urllib3.HTTPConnectionPool(address, port, timeout)
        # The certificate must be the name's, although the connection goes to an address.
        return urllib3.HTTPSConnectionPool(
            address,
            port,
            timeout,
            ssl_context=self._client.tls,
            server_hostname=url.hostname,
        )

    def _answer(
        self,
        request: requests.PreparedRequest,
        url: SplitResult,
        pool: urllib3.HTTPConnectionPool,
        ends_at: float,
    ) -> requests.Response:
        answer = pool.urlopen(
            request.method or "GET",
            request.path_url,
            body=request.body,
            headers={**request.headers, "Host": url.netloc},
            redirect=False,
            retries=False,
            preload_content=False,
            decode_content=False,
        )
        response = self.build_response(request, answer)
        body = bytearray()
        try:
            while piece := answer.read1(CHUNK_BYTES, decode_content=True):
                body += piece
                if time.monotonic() > ends_at:  # for commands, which do not run under gevent
                    raise _late(url)
                if len(body) > self._client.limits.max_response_bytes:
                    raise RequestRefused(f"{url.hostname}: the answer is too large")
        finally:
            answer.close()
        response.raw = io.BytesIO(body)
        return response


def _late(url: SplitResult) -> TookTooLong:
    return TookTooLong(f"{url.hostname}: the answer was not complete in time")


def _refused(url: SplitResult, error: Exception) -> RequestRefused:
    """Return what may be reported of an error; its own text may reveal too much."""
    cause = _innermost(error)
    if isinstance(cause, RequestRefused):
        return cause
    if isinstance(cause, TimeoutError | urllib3.exceptions.TimeoutError):
        return _late(url)
    if isinstance(cause, ssl.SSLCertVerificationError):
        return RequestRefused(
            f"{url.hostname}: the certificate is not valid: {cause.verify_message}"
        )
    if isinstance(cause, socket.gaierror):
        return RequestRefused(f"{url.hostname}: its name could not be found")
    return RequestRefused(f"{url.hostname}: no answer that can be read ({type(cause).__name__})")


def _innermost(error: BaseException) -> BaseException:
    """Return the error that the libraries wrapped."""
    while not isinstance(error, RequestRefused):
        inner = error.__cause__ or next(iter(error.args[-1:]), None)
        if not isinstance(inner, BaseException):
            break
        error = inner
    return error


def verifying_tls() -> ssl.SSLContext:
    """Return a context that verifies a server's certificate and name; slow, as it loads all CAs.

    A machine with nothing but Python may have no CA bundle of its own, or an empty folder for one.
    """
    known = ssl.get_default_verify_paths()
    has_list = known.cafile or (known.capath and os.listdir(known.capath))
    return ssl.create_default_context(cafile=None if has_list else certifi.where())
