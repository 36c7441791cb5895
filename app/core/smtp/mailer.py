"""What all mail of a process shares: time limits, trusted certificates, what is under way."""

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
    """Where mail is handed in; an empty `username` means without AUTH."""

    host: str
    port: int
    username: str = ""
    password: str = field(default="", repr=False)
    uses_tls: bool = True


@dataclass(frozen=True)
class Timeouts:
    """How long to wait for one answer of a server, and for the whole of one attempt, in seconds."""

    answer: float = 10.0
    attempt: float = 45.0


class Conversation(Protocol):
    """A conversation with a server about one mail at a time."""

    @property
    def is_content_sent(self) -> bool:
        """Tell whether the server has asked for the mail's content."""


UNKNOWN_NAME = "[127.0.0.1]"
# How long a name that was not found is not looked for again: each time a mail waits for it.
ASK_AGAIN_SECONDS = 300.0


class Mailer(flask_mail.Mail):
    """Flask-Mail with verified TLS and with an end to every wait.

    `tls` replaces the certificates this machine trusts. `context` is entered around every sending:
    Flask-Mail announces each mail to the application, so that one's context must be there.
    """

    def __init__(
        self, *, tls: ssl.SSLContext | None = None, timeouts: Timeouts | None = None
    ) -> None:
        super().__init__()
        self.timeouts = timeouts or Timeouts()
        self.context: Callable[[], AbstractContextManager[Any]] = nullcontext
        self._tls = tls
        self._out: set[Conversation] = set()
        self._own_name: str | None = None
        self._ask_again_at = 0.0

    @property
    def is_content_out(self) -> bool:
        """Tell whether a server has a mail's content and has not said yet whether it takes it.

        A stop had better wait then.
        """
        return any(conversation.is_content_sent for conversation in tuple(self._out))

    @contextmanager
    def content_goes_out(self, conversation: Conversation) -> Iterator[None]:
        """Have `is_content_out` tell of this conversation meanwhile."""
        self._out.add(conversation)
        try:
            yield
        finally:
            self._out.discard(conversation)

    @property
    def own_name(self) -> str:
        """Return what this machine calls itself; found once, unlike smtplib's for every mail.

        While the DNS does not tell, it is an address that servers may not like.
        """
        if self._own_name is None and time.monotonic() >= self._ask_again_at:
            self._own_name = connecting.own_name(self.timeouts.answer)
            self._ask_again_at = time.monotonic() + ASK_AGAIN_SECONDS
        return self._own_name or UNKNOWN_NAME

    @property
    def tls(self) -> ssl.SSLContext:
        """Return what checks a server's certificate; made once, since reading them all is slow."""
        if self._tls is None:
            self._tls = connecting.verifying_tls()
        return self._tls
