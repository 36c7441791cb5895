"""Sends mail over SMTP, through Flask-Mail.

Invariant: where TLS is required, neither a password nor a mail is sent before the server has proven
its name with a valid certificate. Flask-Mail by itself verifies none, and waits without end.
"""

import smtplib
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import make_msgid
from functools import cached_property
from typing import Any

import flask_mail
import gevent

from app.core.email_address import Mailbox
from app.core.http_client import verifying_tls
from app.core.letter import written
from app.core.texts import one_line
from app.mail.smtp_failures import REFUSALS, Undeliverable, Unwelcome, reply, undeliverable
from app.mail.smtp_login import log_in

IMPLICIT_TLS_PORT = 465
NO_STARTTLS = "the server offers no STARTTLS; to send to it unencrypted, set mail_security=false"
FAREWELL_SECONDS = 1.0
OK = 250
GO_AHEAD = 354  # the reply to DATA: the content may follow
ACCEPTED = range(200, 300)  # the first digit decides (RFC 5321, section 4.2.1)
UNKNOWN_COMMAND = (500, 502)
MAX_MAILS_PER_CONNECTION = 100  # some servers refuse more


@dataclass(frozen=True)
class SmtpServer:
    """Where mail is submitted; an empty `username` means no AUTH.

    `helo_name` is what this client calls itself; empty: what the machine is called.
    """

    host: str
    port: int
    username: str = ""
    password: str = field(default="", repr=False)
    uses_tls: bool = True
    helo_name: str = ""


@dataclass(frozen=True)
class Timeouts:
    """How long to wait for one reply of a server, and for one whole attempt, in seconds."""

    answer: float = 10.0
    attempt: float = 45.0


class Mailer(flask_mail.Mail):
    """What all mail of a process shares.

    `tls` replaces this machine's trust store. `context` is entered around every attempt: Flask-Mail
    signals each mail to the current application, so there must be an application context. `due` is
    set when this process has put a mail into the outbox.
    """

    def __init__(
        self, *, tls: ssl.SSLContext | None = None, timeouts: Timeouts | None = None
    ) -> None:
        super().__init__()
        self.timeouts = timeouts or Timeouts()
        self.context: Callable[[], AbstractContextManager[Any]] = nullcontext
        self.due = threading.Event()
        self._tls = tls

    @cached_property
    def tls(self) -> ssl.SSLContext:
        """Return the context that verifies certificates."""
        return self._tls or verifying_tls()


class Letter(flask_mail.Message):
    """One mail, from an address with a name to another; either name may be empty."""

    def __init__(
        self,
        *,
        sender: Mailbox,
        recipient: Mailbox,
        subject: str,
        text: str,
        html: str,
        written_at: datetime,
    ) -> None:
        super().__init__(subject, [recipient.addr_spec], text, html, sender=sender.addr_spec)
        self.msgId = make_msgid(domain=sender.domain)
        self._from, self._to, self._written_at = sender, recipient, written_at

    @property
    def recipient(self) -> str:
        """The address that it goes to."""
        return self._to.address

    def as_bytes(self) -> bytes:
        """Return the mail in wire format.

        Flask-Mail's own may have longer lines than RFC 5322 allows, and decodes addresses.
        """
        sender, recipient = self._from, self._to
        return written(
            sender=(sender.address, sender.name),
            recipient=(recipient.address, recipient.name),
            subject=self.subject,
            text=self.body or "",
            html=self.html or "",
            written_at=self._written_at,
            message_id=self.msgId,
        )


class SmtpConnection:
    """A connection to an SMTP server, kept open between mails until `close`."""

    def __init__(self, mailer: Mailer) -> None:
        self._mailer = mailer
        self._open: _Connection | None = None

    def send(self, server: SmtpServer, letter: Letter) -> None:
        """Submit a mail.

        Raises: Undeliverable.
        """
        self._attempt(server, lambda: self._submit(server, letter), letter.recipient)

    def check_server(self, server: SmtpServer) -> None:
        """Connect as for a mail, with TLS and login, but submit none.

        Raises: Undeliverable.
        """
        self.close()
        self._attempt(server, lambda: self._connect(server))

    def close(self) -> None:
        """Close the connection; a later `send` connects again."""
        if self._open is not None:
            self._open.say_goodbye()
            self._open = None

    def _attempt(
        self, server: SmtpServer, converse: Callable[[], object], recipient: str = ""
    ) -> None:
        seconds = self._mailer.timeouts.attempt
        ends_at = time.monotonic() + seconds
        try:
            # A socket's own timeout restarts with every byte.
            with gevent.Timeout(seconds, TimeoutError), self._mailer.context():
                converse()
        except (smtplib.SMTPException, OSError, UnicodeError) as error:
            failure = undeliverable(error, server.username, server.password, recipient)
            if time.monotonic() >= ends_at:
                reason = f"the server took longer than {seconds:g} s"
                failure = Undeliverable(reason, is_server_failure=True)
            if self._open is not None:
                host = self._open.host
                is_refused = getattr(error, "smtp_code", None) in REFUSALS
                failure.may_have_arrived = host.is_content_sent and not is_refused
                failure.may_be_mail_specific = host.is_recipient_named
                if failure.is_server_failure:
                    host.close()
                    self._open = None
            raise failure from error

    def _submit(self, server: SmtpServer, letter: Letter) -> None:
        if self._open is not None and not self._open.is_fit_for(server):
            self.close()
        if self._open is not None:
            try:
                self._open.submit(letter)
            except (smtplib.SMTPException, OSError):
                # Lost before the content: the server had closed it, so retrying is safe.
                if self._open.host.sock is not None or self._open.host.is_content_sent:
                    raise
            else:
                return
        self._connect(server).submit(letter)

    def _connect(self, server: SmtpServer) -> "_Connection":
        self._open = None
        self._open = _Connection(self._mailer, server)
        return self._open


class _Smtp(smtplib.SMTP):
    """An SMTP client that records how far a mail has got, and what was refused on the way."""

    is_recipient_named = False
    is_content_sent = False
    content_seconds = 0.0
    command = ""
    ignorance = ""
    refusal: tuple[int, bytes] | None = None

    def ehlo(self, name: str = "") -> tuple[int, bytes]:
        """Greet the server; only one that does not know EHLO is greeted by HELO.

        smtplib takes any refusal for ignorance. After a 421, it would find that nobody is there.
        Raises: SMTPHeloError.
        """
        code, text = super().ehlo(name)
        if code in REFUSALS:
            if code not in UNKNOWN_COMMAND:
                raise Unwelcome(code, text, self.local_hostname)
            self.ignorance = f" (it answered EHLO: {one_line(reply(code, text))})"
        return code, text

    def helo(self, name: str = "") -> tuple[int, bytes]:
        """Greet the server as of old.

        Raises: SMTPHeloError.
        """
        code, text = super().helo(name)
        if code in REFUSALS:
            raise Unwelcome(code, text, self.local_hostname)
        return code, text

    def putcmd(self, cmd: str, args: str = "") -> None:
        self.command = cmd.lower()
        super().putcmd(cmd, args)

    def mail(self, sender: str, options: Sequence[str] = ()) -> tuple[int, bytes]:
        code, text = super().mail(sender, options)
        return _any_success(code), text

    def rcpt(self, recip: str, options: Sequence[str] = ()) -> tuple[int, bytes]:
        self.is_recipient_named = True
        code, text = super().rcpt(recip, options)
        return _any_success(code), text

    def getreply(self) -> tuple[int, bytes]:
        """Return a reply; after the one to DATA, the content is sent.

        From then on the server has the rest of the attempt to examine it: scanners take longer than
        10 s, and a retry would deliver the mail twice (RFC 5321, section 4.5.3.2.6).
        """
        code, text = super().getreply()
        if code in REFUSALS:
            self.refusal = code, text
        if code == GO_AHEAD and self.command == "data":
            self.is_content_sent = True
            if self.sock is not None:
                self.sock.settimeout(self.content_seconds)
        return code, text


def _any_success(code: int) -> int:
    """Return a code as smtplib knows it: it takes other successes for refusals."""
    return OK if code in ACCEPTED else code


class _TlsSmtp(_Smtp, smtplib.SMTP_SSL):
    """The same over TLS from the first byte."""


class _Connection(flask_mail.Connection):
    mail: Mailer
    host: _Smtp

    def __init__(self, mailer: Mailer, server: SmtpServer) -> None:
        super().__init__(mailer)
        self.server = server
        self.host = self.configure_host()

    def configure_host(self) -> _Smtp:
        """Connect, with TLS and login as the server's settings say."""
        server, tls = self.server, self.mail.tls
        has_implicit_tls = server.uses_tls and server.port == IMPLICIT_TLS_PORT
        place = server.host, server.port, server.helo_name or None
        host: _Smtp
        if has_implicit_tls:
            host = _TlsSmtp(*place, timeout=self.mail.timeouts.answer, context=tls)
        else:
            host = _Smtp(*place, timeout=self.mail.timeouts.answer)
        try:
            if server.uses_tls and not has_implicit_tls:
                _encrypt(host, tls)
            if server.username:
                _log_in(host, server.username, server.password)
            host.ehlo_or_helo_if_needed()  # so that an examination greets the server, too
        except BaseException:
            host.close()
            raise
        return host

    def is_fit_for(self, server: SmtpServer) -> bool:
        """Return whether another mail may go to this server over this connection."""
        return self.server == server and self.num_emails < MAX_MAILS_PER_CONNECTION

    def submit(self, letter: Letter) -> None:
        self.host.is_recipient_named = self.host.is_content_sent = False
        self.host.content_seconds = self.mail.timeouts.attempt
        if self.host.sock is not None:
            self.host.sock.settimeout(self.mail.timeouts.answer)
        try:
            self.send(letter)
        except smtplib.SMTPDataError as error:
            if self.host.is_content_sent and error.smtp_code in ACCEPTED:
                self.num_emails += 1
                return  # which smtplib takes for a refusal, too
            # If the server refuses DATA itself, smtplib leaves the mail's transaction open, and the
            # server would refuse the next mail (RFC 5321, section 4.1.4).
            with suppress(smtplib.SMTPServerDisconnected):
                self.host.rset()
            raise

    def say_goodbye(self) -> None:
        """Send QUIT, without waiting long for the reply, and disconnect."""
        with suppress(smtplib.SMTPException, OSError):
            if self.host.sock is not None:
                self.host.sock.settimeout(FAREWELL_SECONDS)
                with gevent.Timeout(FAREWELL_SECONDS, TimeoutError):
                    self.host.quit()
        self.host.close()


def _encrypt(host: _Smtp, tls: ssl.SSLContext) -> None:
    try:
        host.starttls(context=tls)
    except smtplib.SMTPNotSupportedError as error:
        raise smtplib.SMTPNotSupportedError(NO_STARTTLS + host.ignorance) from error


def _log_in(host: _Smtp, username: str, password: str) -> None:
    host.refusal = None
    try:
        log_in(host, username, password)
    except smtplib.SMTPServerDisconnected as error:
        # It refused one way to log in and hung up at the next, which smtplib tries regardless.
        if host.refusal is None:
            raise
        raise smtplib.SMTPAuthenticationError(*host.refusal) from error
    except smtplib.SMTPNotSupportedError as error:
        raise smtplib.SMTPNotSupportedError(f"{error}{host.ignorance}") from error
