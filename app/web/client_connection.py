"""What our own worker tells of the connection a request came over, and is told about its body.

Its requests have a `WorkerBody` (`app/serving/body.py`). Other servers have not: nothing is known
of their connections, and their bodies are read as they come.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Protocol

from flask import request


class ClientConnection(Protocol):
    """The client's connection, for an answer that lasts."""

    def watch(self, left: Callable[[], None]) -> None:
        """Call `left` once when the client hangs up, though nobody reads from it."""

    def unwatch(self) -> None:
        """Watch no longer."""

    def cut(self) -> None:
        """Hang up, so that what is just being sent fails."""

    def send_now(self, data: bytes) -> bytes | None:
        """Send a further part of the answer, while nobody else does, without waiting.

        Return what did not fit and goes to `send_rest`; None when nothing could be sent.
        """

    def send_rest(self, rest: bytes) -> None:
        """Send what `send_now` left, waiting for the client to read."""


class WorkerBody(ABC):
    """A request's body as our own worker reads it."""

    @property
    @abstractmethod
    def connection(self) -> ClientConnection:
        """The connection the request came over."""

    @property
    @abstractmethod
    def is_first_of_connection(self) -> bool:
        """Whether no other request came over it before."""

    @abstractmethod
    def waited_seconds(self) -> float:
        """Return how long the request has been here at least; a busy worker takes it late."""

    @abstractmethod
    def expect_file(self) -> None:
        """From now on let what arrives earn time: it is a file whose sender is known."""

    @abstractmethod
    def expect_nothing(self) -> None:
        """From now on the rest, which nobody wants, has no longer than any other body."""


def connection() -> ClientConnection | None:
    """Return the connection this request came over; None where the server does not show it."""
    body = _body()
    return body.connection if body else None


def is_first_request() -> bool:
    """Tell whether this is known to be its connection's first request."""
    body = _body()
    return body is not None and body.is_first_of_connection


def waited_seconds() -> float:
    """Return how long this request has been here at least, as the kernel tells; 0 if unknown."""
    body = _body()
    return body.waited_seconds() if body else 0.0


def expect_file() -> None:
    """Let this request's body take the time a file may need."""
    if (body := _body()) is not None:
        body.expect_file()


def expect_nothing() -> None:
    """Say that nobody wants the rest of this request's body."""
    if (body := _body()) is not None:
        body.expect_nothing()


def _body() -> WorkerBody | None:
    body = request.environ["wsgi.input"]
    return body if isinstance(body, WorkerBody) else None
