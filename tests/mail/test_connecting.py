"""Reaching a server takes no longer than it may, whatever the DNS and its addresses do."""

import socket
import threading
import time
from contextlib import ExitStack, closing, contextmanager

import pytest

from app.core import connecting
from app.core.smtp import mailer as smtp_mailer
from app.core.smtp.mailer import Mailer, Timeouts
from app.mail import dispatcher
from tests.support.live import free_port
from tests.support.outbox import queue, refusal, use_smtp
from tests.support.smtp import RecordingSmtpServer


@contextmanager
def swallowing():
    """Yield the port of an address that answers no attempt to connect."""
    with ExitStack() as stack:
        full = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        port = full.getsockname()[1]
        for _ in range(4):  # what waits to be accepted fills its queue
            client = stack.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(("127.0.0.1", port))
        yield port


@pytest.fixture
def dead():
    with swallowing() as port:
        yield port


@pytest.fixture
def alive():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def have(monkeypatch, *ports):
    """Give every name these addresses."""
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port)) for port in ports]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_arguments, **_options: found)


@pytest.fixture
def silent_dns(monkeypatch):
    """A DNS that never answers."""
    ended = threading.Event()
    for name in ("getaddrinfo", "getfqdn", "gethostbyname"):
        monkeypatch.setattr(socket, name, lambda *_arguments, **_options: ended.wait(30))
    yield
    ended.set()


def test_addresses_that_swallow_everything_leave_time_for_the_next(monkeypatch, dead, alive):
    have(monkeypatch, dead, dead, dead, alive)
    with connecting.connect("mail.example", 25, address_seconds=10, total_seconds=3) as connection:
        assert connection.getpeername()[1] == alive
        assert connection.gettimeout() == 10


def test_an_address_has_no_more_than_its_own_time(monkeypatch, dead, alive):
    have(monkeypatch, dead, alive)
    began = time.monotonic()
    connecting.connect("mail.example", 25, address_seconds=0.2, total_seconds=120).close()
    assert time.monotonic() - began < 30  # half of what its share would be


def test_all_addresses_together_have_one_end(monkeypatch, dead):
    have(monkeypatch, *[dead] * 20)
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        connecting.connect("mail.example", 25, address_seconds=10, total_seconds=1)
    assert time.monotonic() - began < 30  # of 200 without that end


def test_a_dns_that_is_silent_is_not_waited_for(silent_dns):
    with pytest.raises(TimeoutError):
        connecting.connect("mail.example", 25, address_seconds=10, total_seconds=0.2)


def test_a_refusal_is_told_as_it_is(monkeypatch, alive):
    have(monkeypatch, free_port())
    with pytest.raises(ConnectionRefusedError):
        connecting.connect("mail.example", 25, address_seconds=10, total_seconds=10)


def test_a_mail_waits_for_neither_dns_nor_addresses_beyond_its_attempt(rt, monkeypatch, dead):
    rt.mailer.timeouts = Timeouts(answer=10, attempt=0.5)
    use_smtp(rt, 25)
    have(monkeypatch, *[dead] * 10)
    began = time.monotonic()
    # Whichever notices first: the last address, or the watch over the whole attempt.
    reasons = {"the server did not answer in time", "the server took longer than 0.5 s"}
    assert refusal(rt) in reasons
    assert time.monotonic() - began < 30  # of 100 for all addresses


# --- what this machine calls itself --------------------------------------------------------------


def test_a_machine_introduces_itself_by_its_full_name(monkeypatch):
    monkeypatch.setattr(socket, "getfqdn", lambda: "files.example")
    assert connecting.ehlo_name(1) == "files.example"


def test_without_a_full_name_it_is_an_address(monkeypatch):
    monkeypatch.setattr(socket, "getfqdn", lambda: "files")
    monkeypatch.setattr(socket, "gethostbyname", lambda _name: "192.0.2.7")
    assert connecting.ehlo_name(1) == "[192.0.2.7]"


def test_a_name_that_cannot_be_found_in_time_is_done_without(silent_dns):
    assert connecting.ehlo_name(0.1) is None


def test_a_name_that_was_not_found_is_looked_for_again_later(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(smtp_mailer.time, "monotonic", lambda: now[0])
    mailer, found = Mailer(timeouts=Timeouts(answer=1)), []

    def look() -> str:
        found.append(None)
        if len(found) == 1:
            raise OSError("the DNS is away")
        return "files.example"

    monkeypatch.setattr(socket, "getfqdn", look)
    names = []
    for moment in (1000, 1299, 1300, 1601):
        now[0] = moment
        names.append(mailer.ehlo_name)
    assert names == ["[127.0.0.1]", "[127.0.0.1]", "files.example", "files.example"]
    assert len(found) == 2


def test_a_connection_that_comes_after_the_end_is_cut():
    ours, theirs = socket.socketpair()
    theirs.settimeout(10)
    exchange = connecting.Exchange()
    exchange.abort()
    with ours, theirs, closing(exchange):
        exchange.follow(ours)
        assert theirs.recv(1) == b""


def test_what_was_let_go_of_lives_on_when_the_exchange_is_cut():
    ours, theirs = socket.socketpair()
    theirs.settimeout(10)
    exchange = connecting.Exchange()
    with ours, theirs:
        exchange.follow(ours)
        exchange.close()
        exchange.abort()
        ours.sendall(b"1")
        assert theirs.recv(1) == b"1"


def test_it_is_found_once_and_not_for_every_connection(rt, monkeypatch):
    asked = []
    monkeypatch.setattr(socket, "getfqdn", lambda: asked.append("") or "files.example")
    with RecordingSmtpServer(mails_per_connection=1) as sink:
        use_smtp(rt, sink.port)
        for _ in range(3):
            queue(rt)
        dispatcher.drain(rt)
        assert sink.connections == 3
    assert len(asked) == 1
