"""Sends mail over SMTP, through Flask-Mail.

Invariant: where TLS is required, neither a password nor a mail is sent before the server has proven
its name with a valid certificate (decision E18). Flask-Mail by itself verifies no certificate, and
has no timeouts.
"""

import binascii
import math
import smtplib
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import flask_mail

from app.core import connecting
from app.core.connecting import Exchange
from app.core.smtp.errors import CLOSING, Undeliverable, undeliverable
from app.core.smtp.letter import Letter
from app.core.smtp.mailer import Mailer, SmtpServer

IMPLICIT_TLS_PORT = 465
NO_STARTTLS = "the server offers no STARTTLS; to send to it unencrypted, set mail_security=false"
FAREWELL_SECONDS = 1.0
GO_AHEAD = 354  # the reply to DATA: the content may follow
REFUSALS = range(400, 600)  # any other error reply is malformed or incomplete
# Some servers refuse more than a hundred.
MAX_MAILS_PER_CONNECTION = 100
WATCH_STEPS = 20  # how many times per attempt the deadline is checked


class SmtpConnection:
    """A connection to an SMTP server, kept open between mails until `close`."""

    def __init__(self, mailer: Mailer) -> None:
        self._mailer = mailer
        self._connection: _OpenConnection | None = None
        self._watch: _Watch | None = None

    def send(self, server: SmtpServer, letter: Letter) -> None:
        """Submit a mail.

        Raises: Undeliverable.
        """
        self._attempt(server, lambda watch: self._send(server, letter, watch))

    def check_server(self, server: SmtpServer) -> None:
        """Connect as for a mail, with TLS and login, but submit none.

        Raises: Undeliverable.
        """
        self._hang_up()
        self._attempt(server, lambda watch: self._connect(server, watch))

    def _attempt(self, server: SmtpServer, converse: Callable[["_Watch"], object]) -> None:
        watch = self._watch = self._watch or _Watch(self._mailer.timeouts.attempt)
        try:
            with watch.limited(), self._mailer.context():
                converse(watch)
        except (smtplib.SMTPException, OSError, UnicodeError) as error:
            failure = undeliverable(error, server.username, server.password)
            if watch.is_over:
                reason = f"the server took longer than {self._mailer.timeouts.attempt:g} s"
                failure = Undeliverable(reason, is_server_failure=True)
            failure.may_have_arrived = self._was_content_left_unanswered(error)
            failure.may_be_mail_specific = self._was_recipient_named()
            if failure.is_server_failure:
                self._hang_up()
            raise failure from error

    def _was_content_left_unanswered(self, error: Exception) -> bool:
        """Return whether a mail's content was on its way and has not been refused."""
        if isinstance(error, smtplib.SMTPResponseException) and error.smtp_code in REFUSALS:
            return False
        return self._connection is not None and self._connection.host.is_content_sent

    def _was_recipient_named(self) -> bool:
        """Return whether the server had got far enough to have failed on this mail alone."""
        return self._connection is not None and self._connection.host.is_recipient_named

    def close(self) -> None:
        """Close the connection; a later `send` connects again."""
        self._hang_up()
        if self._watch is not None:
            self._watch.stop()
            self._watch = None

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _send(self, server: SmtpServer, letter: Letter, watch: "_Watch") -> None:
        if self._connection is not None and not self._connection.is_fit_for(server):
            self._hang_up()
        if self._connection is not None:
            try:
                self._connection.submit(letter)
            except (smtplib.SMTPException, OSError):
                if not self._connection.was_lost_before_the_content():
                    raise
                # The server had closed this connection before the content: retrying is safe.
                self._hang_up()
            else:
                return
        self._connect(server, watch).submit(letter)

    def _connect(self, server: SmtpServer, watch: "_Watch") -> "_OpenConnection":
        self._connection = _OpenConnection(self._mailer, server, watch)
        return self._connection


class _Watch(Exchange):
    """Cuts the connection to a server that takes too long, however slowly it sends its bytes.

    A socket's own timeout restarts with every byte.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds
        self._ends_at = math.inf
        self._stopped = threading.Event()
        threading.Thread(target=self._run, name="SMTP watch", daemon=True).start()

    @contextmanager
    def limited(self) -> Iterator[None]:
        """Limit the block to the time of one attempt."""
        self.is_over = False
        self._ends_at = time.monotonic() + self._seconds
        try:
            yield
        finally:
            self._ends_at = math.inf

    @property
    def seconds_left(self) -> float:
        """How long the current attempt may still take; 0 if it took too long."""
        return max(0.0, self._ends_at - time.monotonic())

    def stop(self) -> None:
        """Stop watching."""
        self._stopped.set()
        self.close()

    def _run(self) -> None:
        while not self._stopped.wait(self._seconds / WATCH_STEPS):
            if time.monotonic() > self._ends_at:
                self.abort()


class _Smtp(smtplib.SMTP):
    """An SMTP client that is watched, and that records how far a mail has got."""

    is_recipient_named = False
    is_content_sent = False

    def __init__(self, watch: _Watch, server: SmtpServer, mailer: Mailer) -> None:
        self._watch, self._mailer = watch, mailer
        super().__init__(
            server.host,
            server.port,
            local_hostname=mailer.ehlo_name,
            timeout=mailer.timeouts.answer,
        )

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        connected = connecting.connect(
            host, port, address_seconds=timeout, total_seconds=self._watch.seconds_left
        )
        self._watch.follow(connected)
        return connected

    def mail(self, sender: str, options: Sequence[str] = ()) -> tuple[int, bytes]:
        """Send MAIL FROM, without parsing the address once more as smtplib does."""
        self.putcmd("mail", " ".join((f"FROM:<{sender}>", *options)))
        return self.getreply()

    def rcpt(self, recip: str, options: Sequence[str] = ()) -> tuple[int, bytes]:
        """Send RCPT TO, likewise."""
        self.is_recipient_named = True
        self.putcmd("rcpt", " ".join((f"TO:<{recip}>", *options)))
        return self.getreply()

    def data(self, msg: Any) -> tuple[int, bytes]:
        """Send the content.

        If the server refuses DATA itself, smtplib leaves the mail transaction open, and the server
        would refuse the next mail (RFC 5321 §4.1.4).
        """
        try:
            with self._mailer.track_delivery(self):
                return super().data(msg)
        except smtplib.SMTPDataError as error:
            if error.smtp_code != CLOSING:
                with suppress(smtplib.SMTPServerDisconnected):
                    self.rset()
            raise
        finally:
            if self.sock is not None:
                self.sock.settimeout(self._mailer.timeouts.answer)

    def getreply(self) -> tuple[int, bytes]:
        """Return a reply; after the one to DATA, the content is sent.

        From then on the server has the rest of the attempt to examine it: scanners take longer than
        10 s, and a retry would deliver the mail twice (RFC 5321 §4.5.3.2.6).
        """
        code, text = super().getreply()
        if code == GO_AHEAD:
            self.is_content_sent = True
            if self.sock is not None:
                self.sock.settimeout(self._mailer.timeouts.attempt)
        return code, text


class _TlsSmtp(smtplib.SMTP_SSL, _Smtp):
    """The same over TLS from the first byte."""

    def __init__(
        self, watch: _Watch, server: SmtpServer, mailer: Mailer, tls: ssl.SSLContext
    ) -> None:
        self._watch, self._mailer = watch, mailer
        smtplib.SMTP_SSL.__init__(
            self,
            server.host,
            server.port,
            local_hostname=mailer.ehlo_name,
            timeout=mailer.timeouts.answer,
            context=tls,
        )


class _OpenConnection(flask_mail.Connection):
    mail: Mailer
    host: _Smtp | _TlsSmtp

    def __init__(self, mailer: Mailer, server: SmtpServer, watch: _Watch) -> None:
        super().__init__(mailer)
        self.server = server
        self._watch = watch
        self.host = self.configure_host()

    def submit(self, letter: Letter) -> None:
        """Submit a mail."""
        self.host.is_recipient_named = self.host.is_content_sent = False
        self.send(_Message(letter))

    def configure_host(self) -> _Smtp | _TlsSmtp:
        """Connect, with TLS and login as the server's settings say."""
        server = self.server
        if server.uses_tls and server.port == IMPLICIT_TLS_PORT:
            host: _Smtp | _TlsSmtp = _TlsSmtp(self._watch, server, self.mail, self.mail.tls)
        else:
            host = _Smtp(self._watch, server, self.mail)
        try:
            if server.uses_tls and server.port != IMPLICIT_TLS_PORT:
                _encrypt(host, self.mail.tls)
            if server.username:
                _log_in(host, server)
        except BaseException:
            host.close()
            raise
        return host

    def is_fit_for(self, server: SmtpServer) -> bool:
        """Return whether another mail may go to this server over this connection."""
        return self.server == server and self.num_emails < MAX_MAILS_PER_CONNECTION

    def was_lost_before_the_content(self) -> bool:
        return self.host.sock is None and not self.host.is_content_sent

    def close(self) -> None:
        """Send QUIT, without waiting long for the reply, and disconnect."""
        with suppress(smtplib.SMTPException, OSError):
            if self.host.sock is not None:
                self.host.sock.settimeout(FAREWELL_SECONDS)
                self.host.quit()
        self.host.close()


def _encrypt(host: smtplib.SMTP, tls: ssl.SSLContext) -> None:
    try:
        host.starttls(context=tls)
    except smtplib.SMTPNotSupportedError as error:
        raise smtplib.SMTPNotSupportedError(NO_STARTTLS) from error


def _log_in(host: smtplib.SMTP, server: SmtpServer) -> None:
    try:
        host.login(server.username, server.password)
    except binascii.Error as error:
        raise smtplib.SMTPException("the server's challenge cannot be read") from error


class _Message(flask_mail.Message):
    """A letter in the form that Flask-Mail sends.

    Skips Message's own constructor, which would look up this machine's name in the DNS every time.
    """

    def __init__(self, letter: Letter) -> None:
        # Pairs of name and address, which Flask-Mail need not parse.
        self.sender = ("", letter.sender)
        self.recipients = [("", letter.recipient)]
        self.subject = letter.subject
        self.date = letter.written_at.timestamp()
        self.cc, self.bcc, self.reply_to = [], [], None
        self.mail_options, self.rcpt_options = [], []
        self._raw = letter.as_bytes()

    def as_bytes(self) -> bytes:
        """Return the mail in wire format."""
        return self._raw
