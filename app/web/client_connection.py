"""The client's connection, where the server exposes it."""

from collections.abc import Callable
from typing import Protocol


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
