"""Finds and reaches a server within a time, whatever the DNS and its addresses do."""

import os
import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import certifi

from app.core.questions import ask_in_thread

T = TypeVar("T")

QUESTIONS_AT_ONCE = 4
DNS_THREAD = "DNS question"

# As getaddrinfo gives it: family, type, protocol, canonical name, address.
AddressInfo = tuple[Any, Any, int, str, tuple[Any, ...]]


class DnsQuestions:
    """A few questions to the DNS at once.

    The system's resolver cannot be interrupted: one that hangs keeps its place until that gives up.
    """

    def __init__(self) -> None:
        self._places = threading.BoundedSemaphore(QUESTIONS_AT_ONCE)

    def within(self, seconds: float, ask: Callable[[], T]) -> T:
        """Return what was found; to wait for a place takes from the time as well.

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
            answer = ask_in_thread(ask_and_leave, thread=DNS_THREAD)
        except BaseException:  # there are no more threads to be had
            self._places.release()
            raise
        return answer.result(timeout=max(ends_at - time.monotonic(), 0))


_dns = DnsQuestions()


def connect(host: str, port: int, *, each: float, altogether: float) -> socket.socket:
    """Return a connection to the first address of a host that takes one.

    An address has `each` seconds at the most, and never more than its share of what is left: one
    that swallows everything must not use up the time of those behind it. All of it, the question to
    the DNS included, ends after `altogether` seconds. Later the connection waits `each` seconds.
    Raises: OSError, that of the last address.
    """
    ends_at = time.monotonic() + altogether
    found = _dns.within(altogether, lambda: look_up(host, port))
    connection = connect_to_first(found, each=each, ends_at=ends_at)
    connection.settimeout(each)
    return connection


def look_up(host: str, port: int) -> list[AddressInfo]:
    """Return what a name stands for, in the system's order of preference.

    Raises: OSError; UnicodeError for what cannot be a name.
    """
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)


def connect_to_first(found: list[AddressInfo], *, each: float, ends_at: float) -> socket.socket:
    """Return a connection to the first of these addresses that takes one.

    `ends_at` is a moment of the monotonic clock; for `each` and the rest see `connect`.
    """
    failure = OSError("its name has no address")
    for tried, (family, kind, protocol, _, address) in enumerate(found):
        seconds = min(each, (ends_at - time.monotonic()) / (len(found) - tried))
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
    """A hold of one's own on a connection, with TLS or without, by which another thread ends it."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = socket.socket(fileno=os.dup(connected.fileno()))

    def cut(self) -> None:
        """End the connection for whoever waits for it."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Let go; the connection lives on."""
        self._socket.close()


class Exchange:
    """What is said to a server and back, which another thread may end at any moment."""

    def __init__(self) -> None:
        self.is_over = False
        self._handle: Handle | None = None

    def follow(self, connected: socket.socket) -> None:
        """Take place over this connection from now on; it is cut at once when all is over."""
        self.close()
        self._handle = Handle(connected)
        # Looked at after the handle is set; `cut` does it the other way round, so none is missed.
        if self.is_over:
            self.cut()

    def cut(self) -> None:
        """End it, also if its connection is still to come."""
        self.is_over = True
        handle = self._handle  # which its own thread may let go of meanwhile
        if handle is not None:
            handle.cut()

    def close(self) -> None:
        """Let go of the connection, which lives on."""
        if self._handle is not None:
            self._handle.close()
            self._handle = None


def verifying_tls() -> ssl.SSLContext:
    """Return what checks a server's certificate and name; slow, since it reads all authorities.

    A machine with nothing but Python may have no list of its own, or an empty folder for one.
    """
    known = ssl.get_default_verify_paths()
    has_list = known.cafile or (known.capath and os.listdir(known.capath))
    return ssl.create_default_context(cafile=None if has_list else certifi.where())


def own_name(seconds: float) -> str | None:
    """Return what this machine calls itself to servers (RFC 5321 §4.1.1.1, §4.1.3).

    Its full name, or else its address in brackets; the DNS is asked for so many seconds. None when
    it does not tell now.
    """
    ends_at = time.monotonic() + seconds
    try:
        name = _told_within(seconds, socket.getfqdn)
        if "." in name:
            return name
        left = ends_at - time.monotonic()
        return f"[{_told_within(left, lambda: socket.gethostbyname(socket.gethostname()))}]"
    except OSError:
        return None


def _told_within(seconds: float, ask: Callable[[], str]) -> str:
    return ask_in_thread(ask, thread=DNS_THREAD).result(timeout=seconds)
