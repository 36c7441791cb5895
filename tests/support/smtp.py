"""SMTP servers to send to: a real one that keeps what it receives, and ones that misbehave."""

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from pathlib import Path
from typing import Any

from aiosmtpd.smtp import SMTP, AuthResult, LoginPassword
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.support.background import BackgroundServer
from tests.support.mailbox import parsed

HOST = "localhost"


@dataclass(frozen=True)
class ReceivedMail:
    """One mail as received; `user` is who had authenticated, `connection` counts from 1."""

    sender: str
    recipients: list[str]
    raw: bytes
    is_encrypted: bool
    user: str | None
    connection: int

    @property
    def message(self) -> EmailMessage:
        return parsed(self.raw)


@dataclass
class RecordingSmtpServer(BackgroundServer):
    """A real SMTP server that keeps every mail; a context manager.

    `tls` offers STARTTLS, `implicit_tls` speaks TLS from the first byte. `passwords` makes it
    require authentication, in one of these `ways`. `refusals` are answers to RCPT by address, of
    which an empty one hangs up; `data_refusals` those to DATA; `data_answers` the next ones to a
    mail's content. `on_mail` is called with every mail before it is answered. It hangs up after
    `mails_per_connection`. `named` has what RCPT named, and `greeted_by` what EHLO did, as it was
    written.
    """

    tls: ssl.SSLContext | None = None
    implicit_tls: ssl.SSLContext | None = None
    passwords: dict[str, str] | None = None
    ways: Collection[str] = ("PLAIN", "LOGIN")
    refusals: dict[str, str] = field(default_factory=dict)
    data_refusals: dict[str, str] = field(default_factory=dict)
    data_answers: list[str] = field(default_factory=list)
    on_mail: Callable[[ReceivedMail], object] = lambda _mail: None
    mails_per_connection: int | None = None
    received: list[ReceivedMail] = field(default_factory=list)
    named: list[str] = field(default_factory=list)
    greeted_by: list[str] = field(default_factory=list)
    connections: int = 0
    logins: list[tuple[str, str]] = field(default_factory=list)
    port: int = 0

    @property
    def is_anybody_connected(self) -> bool:
        return bool(self._open)

    @property
    def recipients(self) -> list[str]:
        """The recipients of all mails."""
        return [address for mail in self.received for address in mail.recipients]

    async def _serve(self, started: threading.Event) -> None:
        self._open: set[asyncio.WriteTransport] = set()
        server = await self._loop.create_server(
            self._protocol, "127.0.0.1", self.port, ssl=self.implicit_tls
        )
        self.port = server.sockets[0].getsockname()[1]
        started.set()
        await self._ended.wait()
        server.close()
        for transport in list(self._open):
            # asyncio's TLS transport cannot be aborted any more once its connection is lost.
            with suppress(AttributeError):
                transport.abort()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await asyncio.sleep(0)

    def _protocol(self) -> SMTP:
        self.connections += 1
        return _Protocol(
            self,
            hostname="sink.example",
            tls_context=self.tls,
            auth_require_tls=False,
            auth_exclude_mechanism={"PLAIN", "LOGIN"} - set(self.ways),
            authenticator=self._authenticate if self.passwords is not None else None,
            loop=self._loop,
        )

    def _authenticate(
        self, _server: Any, session: Any, _envelope: Any, _mechanism: str, data: Any
    ) -> AuthResult:
        assert isinstance(data, LoginPassword)
        user, password = data.login.decode(), data.password.decode()
        self.logins.append((user, password))
        session.user = user
        return AuthResult(success=(self.passwords or {}).get(user) == password, handled=False)

    # --- what aiosmtpd calls -----------------------------------------------------------------

    async def handle_RCPT(  # noqa: N802
        self, server: Any, _session: Any, envelope: Any, address: str, _options: Any
    ) -> str:
        if (answer := self.refusals.get(address)) is not None:
            if not answer:
                server.transport.close()
            return answer
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802
        mail = ReceivedMail(
            sender=envelope.mail_from,
            recipients=list(envelope.rcpt_tos),
            raw=envelope.original_content,
            is_encrypted=session.ssl is not None or self.implicit_tls is not None,
            user=getattr(session, "user", None),
            connection=server.number,
        )
        if self.data_answers:
            answer = self.data_answers.pop(0)
            if not answer.startswith("250"):
                return answer
        self.received.append(mail)
        await self._loop.run_in_executor(None, self.on_mail, mail)
        server.taken += 1
        if server.taken == self.mails_per_connection:
            self._loop.call_soon(server.transport.close)
        return "250 OK"


class _Protocol(SMTP):
    taken = 0

    def __init__(self, sink: RecordingSmtpServer, **options: Any) -> None:
        super().__init__(sink, **options)
        self._sink = sink
        self.number = sink.connections
        # Passed as an argument it would warn that authentication without TLS is insecure.
        self._auth_required = sink.passwords is not None

    async def smtp_EHLO(self, hostname: str) -> None:  # noqa: N802
        self._sink.greeted_by.append(hostname)
        await super().smtp_EHLO(hostname)

    async def smtp_RCPT(self, arg: str) -> None:  # noqa: N802
        self._sink.named.append(arg)
        await super().smtp_RCPT(arg)

    async def smtp_DATA(self, arg: str | None) -> None:  # noqa: N802
        assert self.envelope is not None
        for address in self.envelope.rcpt_tos:
            if (answer := self._sink.data_refusals.get(address)) is not None:
                await self.push(answer)
                return
        await super().smtp_DATA(arg)

    def connection_made(self, transport: Any) -> None:
        self._sink._open.add(transport)
        super().connection_made(transport)

    def connection_lost(self, error: Exception | None) -> None:
        self._sink._open.discard(self.transport)
        super().connection_lost(error)


class ScriptedSmtpServer:
    """Accepts connections and lets `behave(socket)` do what a proper server never would.

    With `hangs` each connection is then left open, unread, until the server ends.
    """

    def __init__(self, behave: Callable[[socket.socket], object], *, hangs: bool = False) -> None:
        self._behave = behave
        self._hangs = hangs
        self._ended = threading.Event()
        self.connections = 0

    def __enter__(self) -> "ScriptedSmtpServer":
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        # Closing alone would not wake up accept().
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(10)

    def _run(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            with client, suppress(OSError):
                self._behave(client)
                if self._hangs:
                    self._ended.wait()


def converse(client: socket.socket, *, until: bytes) -> None:
    """Answer like a server that accepts everything, until a command that is left unanswered."""
    client.sendall(b"220 hello\r\n")
    reader = client.makefile("rb")
    with reader:
        for line in reader:
            if line.upper().startswith(until):
                return
            is_data = line.upper().startswith(b"DATA")
            client.sendall(b"354 go on\r\n" if is_data else b"250 OK\r\n")


# --- certificates --------------------------------------------------------------------------------


class Authority:
    """A private certificate authority."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "The suite's authority")])
        self._name = name
        self._count = 0
        certificate = (
            self._builder(name, self._key, datetime.now(UTC) + timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.path = folder / "authority.pem"
        self.path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def client(self) -> ssl.SSLContext:
        """Return a client context that trusts this authority, and is as strict as in production."""
        return ssl.create_default_context(cafile=str(self.path))

    def server(self, host: str = HOST, *, expired: bool = False) -> ssl.SSLContext:
        """Return a server context with a certificate for this host name."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.pem(host, expired=expired))
        return context

    def pem(self, host: str = HOST, *, expired: bool = False) -> Path:
        """Return a file with a key and a certificate for this host name."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
        end = datetime.now(UTC) + timedelta(hours=-1 if expired else 24)
        certificate = (
            self._builder(subject, key, end)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
            .sign(self._key, hashes.SHA256())
        )
        self._count += 1
        path = self._folder / f"server{self._count}.pem"
        path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
            + certificate.public_bytes(serialization.Encoding.PEM)
        )
        return path

    def _builder(self, subject: x509.Name, key: Any, end: datetime) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(datetime.now(UTC) - timedelta(days=2))
            .not_valid_after(end)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
        )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
