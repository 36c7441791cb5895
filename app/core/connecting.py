"""Resolves a host and connects to it within a deadline, whatever its DNS and addresses do."""

import os
import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import certifi

from app.core.blocking_calls import run_in_daemon_thread

T = TypeVar("T")

MAX_CONCURRENT_LOOKUPS = 4
DNS_THREAD = "DNS question"

# As getaddrinfo returns it: family, type, protocol, canonical name, address.
AddressInfo = tuple[Any, Any, int, str, tuple[Any, ...]]


class DnsLookups:
    """Limits how many DNS lookups run at once.

    The system's resolver cannot be interrupted: a hanging lookup holds its slot until it gives up.
    """

    def __init__(self) -> None:
        self._places = threading.BoundedSemaphore(MAX_CONCURRENT_LOOKUPS)

    def within(self, seconds: float, ask: Callable[[], T]) -> T:
        """Return what `ask` returns within `seconds`, which include the wait for a slot.

        Raises: TimeoutError, and what `ask` raises.
        """
        ends_at = time.monotonic() + seconds
        if not self._places.acquire(timeout=seconds):
            raise TimeoutError

        def ask_and_leave() -> T:
            try:
                return ask()
            finally:
                self._places.release()

        try:
            answer = run_in_daemon_thread(ask_and_leave, thread=DNS_THREAD)
        except BaseException:  # no thread could be started
            self._places.release()
            raise
        return answer.result(timeout=max(ends_at - time.monotonic(), 0))


_dns = DnsLookups()


def connect(host: str, port: int, *, address_seconds: float, total_seconds: float) -> socket.socket:
    """Return a connection to the first address of a host that accepts one.

    Each address gets at most `address_seconds`, and never more than its share of the time left: one
    that drops every packet must not use up the time of those behind it. Everything, the DNS lookup
    included, ends after `total_seconds`. The connection's own timeout is `address_seconds`.
    Raises: OSError, that of the last address.
    """
    ends_at = time.monotonic() + total_seconds
    found = _dns.within(total_seconds, lambda: look_up(host, port))
    connection = connect_to_first(found, address_seconds=address_seconds, ends_at=ends_at)
    connection.settimeout(address_seconds)
    return connection


def look_up(host: str, port: int) -> list[AddressInfo]:
    """Return the addresses of a host, in the system's order of preference.

    Raises: OSError; UnicodeError for what cannot be a host name.
    """
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)


def connect_to_first(
    found: list[AddressInfo], *, address_seconds: float, ends_at: float
) -> socket.socket:
    """Return a connection to the first of these addresses that accepts one.

    `ends_at` is a time of the monotonic clock; for `address_seconds` and the rest see `connect`.
    """
    failure = OSError("its name has no address")
    for tried, (family, kind, protocol, _, address) in enumerate(found):
        seconds = min(address_seconds, (ends_at - time.monotonic()) / (len(found) - tried))
        if seconds <= 0:
            raise TimeoutError
        connection = socket.socket(family, kind, protocol)
        try:
            connection.settimeout(seconds)
            connection.connect(address)
        except OSError as error:
            connection.close()
            failure = error
        else:
            return connection
    raise failure


class Handle:
    """A duplicate descriptor of a connection, TLS or not, by which another thread can end it."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = socket.socket(fileno=os.dup(connected.fileno()))

    def abort(self) -> None:
        """Shut the connection down, which wakes any thread blocked on it."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the duplicate; the connection stays open."""
        self._socket.close()


class Exchange:
    """An exchange with a server that another thread may end at any moment."""

    def __init__(self) -> None:
        self.is_over = False
        self._handle: Handle | None = None

    def follow(self, connected: socket.socket) -> None:
        """Use this connection from now on; it is cut at once if the exchange is already over."""
        self.close()
        self._handle = Handle(connected)
        # Checked after the handle is set; `abort` does the reverse, so no abort is missed.
        if self.is_over:
            self.abort()

    def abort(self) -> None:
        """End the exchange, even if its connection is still to come."""
        self.is_over = True
        handle = self._handle  # read once: the exchange's own thread may clear it meanwhile
        if handle is not None:
            handle.abort()

    def close(self) -> None:
        """Release the connection, which stays open."""
        if self._handle is not None:
            self._handle.close()
            self._handle = None


def verifying_tls() -> ssl.SSLContext:
    """Return a context that verifies a server's certificate and name; slow, as it loads all CAs.

    A machine with nothing but Python may have no CA bundle of its own, or an empty folder for one.
    """
    known = ssl.get_default_verify_paths()
    has_list = known.cafile or (known.capath and os.listdir(known.capath))
    return ssl.create_default_context(cafile=None if has_list else certifi.where())


def ehlo_name(seconds: float) -> str | None:
    """Return how this machine introduces itself to servers (RFC 5321 §4.1.1.1, §4.1.3).

    That is its fully qualified name, or else its address in brackets; None when the DNS gives
    neither within `seconds`.
    """
    ends_at = time.monotonic() + seconds
    try:
        name = _result_within(seconds, socket.getfqdn)
        if "." in name:
            return name
        left = ends_at - time.monotonic()
        return f"[{_result_within(left, lambda: socket.gethostbyname(socket.gethostname()))}]"
    except OSError:
        return None


def _result_within(seconds: float, ask: Callable[[], str]) -> str:
    return run_in_daemon_thread(ask, thread=DNS_THREAD).result(timeout=seconds)
