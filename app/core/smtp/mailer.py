"""What all mail of a process shares: timeouts, trusted certificates, mails in transit."""

import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Protocol

import flask_mail

from app.core import connecting


@dataclass(frozen=True)
class SmtpServer:
    """Where mail is submitted; an empty `username` means no AUTH."""

    host: str
    port: int
    username: str = ""
    password: str = field(default="", repr=False)
    uses_tls: bool = True


@dataclass(frozen=True)
class Timeouts:
    """How long to wait for one reply of a server, and for one whole attempt, in seconds."""

    answer: float = 10.0
    attempt: float = 45.0


class Conversation(Protocol):
    """A conversation with a server about one mail at a time."""

    @property
    def is_content_sent(self) -> bool:
        """Return whether the server has asked for the mail's content."""


UNKNOWN_NAME = "[127.0.0.1]"
# How long a failed lookup of the name is not repeated: a mail waits for each lookup.
ASK_AGAIN_SECONDS = 300.0


class Mailer(flask_mail.Mail):
    """Flask-Mail with verified TLS, and a timeout for every wait.

    `tls` replaces this machine's trust store. `context` is entered around every attempt: Flask-Mail
    signals each mail to the current application, so there must be an application context.
    """

    def __init__(
        self, *, tls: ssl.SSLContext | None = None, timeouts: Timeouts | None = None
    ) -> None:
        super().__init__()
        self.timeouts = timeouts or Timeouts()
        self.context: Callable[[], AbstractContextManager[Any]] = nullcontext
        self._tls = tls
        self._deliveries: set[Conversation] = set()
        self._ehlo_name: str | None = None
        self._ask_again_at = 0.0

    @property
    def has_unconfirmed_delivery(self) -> bool:
        """Return whether a server has a mail's content but has not said yet whether it accepts it.

        A shutdown should wait then.
        """
        return any(conversation.is_content_sent for conversation in tuple(self._deliveries))

    @contextmanager
    def track_delivery(self, conversation: Conversation) -> Iterator[None]:
        """Count this conversation in `has_unconfirmed_delivery` during the block."""
        self._deliveries.add(conversation)
        try:
            yield
        finally:
            self._deliveries.discard(conversation)

    @property
    def ehlo_name(self) -> str:
        """Return this machine's name for EHLO; looked up once, not for every mail as in smtplib.

        While the DNS does not answer, it is an address that servers may not like.
        """
        if self._ehlo_name is None and time.monotonic() >= self._ask_again_at:
            self._ehlo_name = connecting.ehlo_name(self.timeouts.answer)
            self._ask_again_at = time.monotonic() + ASK_AGAIN_SECONDS
        return self._ehlo_name or UNKNOWN_NAME

    @property
    def tls(self) -> ssl.SSLContext:
        """Return the context that verifies certificates; created once, as loading them is slow."""
        if self._tls is None:
            self._tls = connecting.verifying_tls()
        return self._tls
