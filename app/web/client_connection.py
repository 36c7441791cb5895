"""The interface to our own worker: facts about a request's connection, and hints on its body.

Its requests have a `WorkerBody` (`app/serving/body.py`). Under any other server nothing is known of
the connection, and the body is read as it arrives.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Protocol

from flask import request


class ClientConnection(Protocol):
    """The client's connection, for a long-lived response."""

    def watch(self, left: Callable[[], None]) -> None:
        """Call `left` once when the client disconnects, without reading from it."""

    def unwatch(self) -> None:
        """Stop watching."""

    def disconnect(self) -> None:
        """Disconnect, so that a send in progress fails."""

    def send_now(self, data: bytes) -> bytes | None:
        """Send another part of the response without blocking; there must be no other sender.

        Return what did not fit, for `send_rest`; None if nothing could be sent.
        """

    def send_rest(self, rest: bytes) -> None:
        """Send what `send_now` returned, blocking until the client has made room for it."""


class WorkerBody(ABC):
    """A request's body as our own worker reads it."""

    @property
    @abstractmethod
    def connection(self) -> ClientConnection:
        """The connection the request came in on."""

    @property
    @abstractmethod
    def is_first_of_connection(self) -> bool:
        """Whether this is the first request on its connection."""

    @abstractmethod
    def seconds_since_arrival(self) -> float:
        """Return at least how long ago the request arrived; a busy worker picks it up late."""

    @abstractmethod
    def allow_slow_body(self) -> None:
        """From now on let bytes extend the deadline: this is a file of an authenticated sender."""

    @abstractmethod
    def limit_rest_of_body(self) -> None:
        """Give the rest of the body, which nobody wants, no longer than any other body."""


def connection() -> ClientConnection | None:
    """Return the connection this request came in on; None if the server does not expose it."""
    body = _body()
    return body.connection if body else None


def is_first_request() -> bool:
    """Return whether this is known to be its connection's first request."""
    body = _body()
    return body is not None and body.is_first_of_connection


def seconds_since_arrival() -> float:
    """Return at least how long ago this request arrived, according to the kernel; 0 if unknown."""
    body = _body()
    return body.seconds_since_arrival() if body else 0.0


def allow_slow_body() -> None:
    """Allow this request's body the time that a file may take."""
    if (body := _body()) is not None:
        body.allow_slow_body()


def limit_rest_of_body() -> None:
    """Declare that nobody wants the rest of this request's body."""
    if (body := _body()) is not None:
        body.limit_rest_of_body()


def _body() -> WorkerBody | None:
    body = request.environ["wsgi.input"]
    return body if isinstance(body, WorkerBody) else None
