"""The guarded client: what it never reaches, and how every request comes to an end."""

import gzip
import itertools
import os
import socket
import subprocess
import sys
import textwrap
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from ipaddress import ip_address, ip_network
from pathlib import Path

import pytest
import requests

from app.core import addresses
from app.core.http_client import (
    MAX_RESPONSE_BYTES,
    HttpClient,
    RequestRefused,
    ResponseLimits,
    TookTooLong,
)
from tests.support.clock import FakeClock
from tests.support.fake_provider import FakeProvider, Reply
from tests.support.servers import ROOT
from tests.support.smtp import Authority

OWN = ip_network("10.0.0.0/8"), ip_network("fd00::/8")

PUBLIC = ("93.184.215.14", "8.8.8.8", "2606:4700::1111", "64:ff9b::8.8.8.8", "::ffff:8.8.8.8")

INTERNAL = (
    # loopback and "this host"
    "127.0.0.1",
    "0.0.0.0",
    "::1",
    "::",
    # private
    "10.0.0.1",
    "172.16.0.1",
    "192.168.0.1",
    "100.64.0.1",
    "100.100.100.200",
    "fc00::1",
    "fd00:ec2::254",
    "fec0::1",
    # link-local, metadata of clouds
    "169.254.169.254",
    "169.254.170.2",
    "168.63.129.16",
    "192.0.0.192",
    "fe80::1",
    # documentation, tests, relays, multicast, reserved
    "192.0.0.8",
    "192.0.2.1",
    "192.88.99.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "240.0.0.1",
    "100::1",
    "2001:db8::1",
    "3fff::1",
    "5f00::1",
    "ff02::1",
    # IPv4-mapped and other IPv6 forms of IPv4
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:0:127.0.0.1",
    "::127.0.0.1",
    "64:ff9b::127.0.0.1",
    "64:ff9b:1::10.0.0.1",
    "2002:7f00:1::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
)

# Hosts that the system itself turns into an internal address, or that mean this machine.
SPELLINGS = (
    "127.0.0.1",
    "127.1",
    "127.0.1",
    "2130706433",
    "0x7f000001",
    "0x7f.0.0.1",
    "017700000001",
    "0177.0.0.1",
    "0",
    "0.0.0.0",
    "localhost",
    "LOCALHOST",
    "localhost.",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "169.254.169.254",
    "2852039166",
    "0xa9fea9fe",
    "0251.0376.0251.0376",
    "10.0.0.1",
    "192.168.1.1",
    "[fe80::1]",
    "[fd00:ec2::254]",
    "①②⑦.⓪.⓪.①",
    "127。0。0。1",
)


def at(*texts: str) -> Callable[[str, int], list[str]]:
    """Return a resolver to whom every name stands for these addresses."""
    return lambda _host, _port: list(texts)


@pytest.fixture
def connections(monkeypatch) -> list[tuple]:
    """Every address that a socket was told to connect to; none is reached."""
    made: list[tuple] = []

    def connect(_socket: socket.socket, address: tuple) -> None:
        made.append(address)
        raise ConnectionRefusedError

    monkeypatch.setattr(socket.socket, "connect", connect)
    return made


def let_pass(conversation: HttpClient, seconds: float) -> None:
    """Have so much of a conversation's time be over."""
    conversation._ends_at -= seconds


@pytest.fixture
def server(clock: FakeClock):
    with FakeProvider(clock) as running:
        yield running


@pytest.fixture
def local() -> HttpClient:
    return HttpClient(allow_loopback=True)


@pytest.fixture
def impatient() -> HttpClient:
    return HttpClient(allow_loopback=True, limits=ResponseLimits(seconds=0.6))


# --- addresses -----------------------------------------------------------------------------------


@pytest.mark.parametrize("text", INTERNAL)
def test_internal_addresses(text: str):
    assert not addresses.is_public(addresses.parse(text))


@pytest.mark.parametrize("text", PUBLIC)
def test_public_addresses(text: str):
    assert addresses.is_public(addresses.parse(text))


@pytest.mark.parametrize("text", INTERNAL)
def test_a_name_that_stands_for_an_internal_address_is_not_connected_to(connections, text: str):
    with pytest.raises(RequestRefused):
        HttpClient(resolve=at(text)).get("https://provider.example.com/")
    assert connections == []


@pytest.mark.parametrize("text", PUBLIC)
def test_the_address_that_was_looked_at_is_the_one_connected_to(connections, text: str):
    with pytest.raises(RequestRefused):
        HttpClient(resolve=at(text)).get("https://provider.example.com/")
    [(address, port, *_)] = connections
    assert (ip_address(address), port) == (ip_address(text), 443)


@pytest.mark.parametrize("text", ["10.0.0.1", "10.255.255.255", "fd12::1", "::ffff:10.0.0.1"])
def test_an_operators_own_network_is_asked_where_it_is_named(connections, text):
    with pytest.raises(RequestRefused):
        HttpClient(resolve=at(text), internal=OWN).get("https://provider.example.com/")
    assert [address[:2] for address in connections] == [(text, 443)]


@pytest.mark.parametrize("text", ["9.0.0.1", "11.0.0.1", "192.168.0.1", "fc00::1"])
def test_that_opens_no_other_network(connections, text):
    with suppress(RequestRefused):
        HttpClient(resolve=at(text), internal=OWN).get("https://provider.example.com/")
    assert bool(connections) is addresses.is_public(addresses.parse(text))


@pytest.mark.parametrize(
    "text",
    [
        *(
            "127.0.0.1",
            "::1",
            "0.0.0.0",
            "::",
            "169.254.169.254",
            "fe80::1",
            "224.0.0.1",
            "ff02::1",
        ),
        *("100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254"),
        *("fd00:ec2::23", "fd20:ce::254", "fd00:c1::a9fe:a9fe", "fd00:42::42"),
        *("::ffff:169.254.169.254", "64:ff9b::169.254.169.254"),
    ],
)
def test_this_machine_and_metadata_are_in_no_network_of_an_operator(connections, text):
    everything = ip_network("0.0.0.0/0"), ip_network("::/0")
    with pytest.raises(RequestRefused, match="internal"):
        HttpClient(resolve=at(text), internal=everything).get("https://provider.example.com/")
    assert connections == []


@pytest.mark.parametrize("mixed", [("8.8.8.8", "10.0.0.1"), ("10.0.0.1", "8.8.8.8")])
def test_a_name_with_one_internal_address_is_refused(connections, mixed):
    with pytest.raises(RequestRefused, match="internal"):
        HttpClient(resolve=at(*mixed)).get("https://provider.example.com/")
    assert connections == []


def test_a_name_whose_answer_changes_is_looked_up_once(connections):
    """DNS re-binding: the second answer, for the connection, would be the internal one."""
    answers = iter(("8.8.8.8", "127.0.0.1", "127.0.0.1"))
    asked: list[str] = []

    def resolve(host: str, port: int) -> list:
        asked.append(host)
        return at(next(answers))(host, port)

    with pytest.raises(RequestRefused):
        HttpClient(resolve=resolve).get("https://rebind.example.com/")
    assert asked == ["rebind.example.com"]
    assert connections == [("8.8.8.8", 443)]


def test_every_request_is_looked_at_anew(connections):
    """Nothing is kept open or remembered from a request that was allowed."""
    answers = iter(("8.8.8.8", "127.0.0.1"))
    http_client = HttpClient(resolve=lambda host, port: at(next(answers))(host, port))
    with pytest.raises(RequestRefused, match="ConnectionRefused"):
        http_client.get("https://rebind.example.com/")
    with pytest.raises(RequestRefused, match="internal"):
        http_client.get("https://rebind.example.com/")
    assert connections == [("8.8.8.8", 443)]


@pytest.mark.parametrize("host", SPELLINGS)
@pytest.mark.parametrize("scheme", ["https", "http"])
def test_no_spelling_reaches_this_machine(connections, scheme: str, host: str):
    with pytest.raises(requests.RequestException):
        HttpClient().get(f"{scheme}://{host}:8000/")
    assert connections == []


def test_the_next_address_is_tried(connections):
    with pytest.raises(RequestRefused):
        HttpClient(resolve=at("2606:4700::1111", "8.8.8.8")).get("https://provider.example.com/")
    assert [address[0] for address in connections] == ["2606:4700::1111", "8.8.8.8"]


# --- the development switch ----------------------------------------------------------------------


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_the_switch_opens_this_machine(local: HttpClient, server: FakeProvider, host: str):
    url = server.issuer.replace("127.0.0.1", host)
    assert local.get(f"{url}/jwks").json() == {"keys": server.keys}


@pytest.mark.parametrize(
    "host",
    [
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "127.1",
        "0.0.0.0",
        "[::]",
        "localhost.",
        "169.254.169.254",
        "10.0.0.1",
        "[fd00:ec2::254]",
    ],
)
def test_the_switch_opens_nothing_else(connections, local: HttpClient, host: str):
    for scheme in ("http", "https"):
        with pytest.raises(requests.RequestException):
            local.get(f"{scheme}://{host}:8000/")
    assert connections == []


def test_under_the_switch_a_name_of_others_cannot_stand_for_this_machine(connections):
    http_client = HttpClient(allow_loopback=True, resolve=at("127.0.0.1"))
    with pytest.raises(RequestRefused, match="internal"):
        http_client.get("https://provider.example.com/")
    assert connections == []


def test_under_the_switch_localhost_cannot_stand_for_others(connections):
    http_client = HttpClient(allow_loopback=True, resolve=at("8.8.8.8"))
    with pytest.raises(RequestRefused):
        http_client.get("http://localhost/")
    assert connections == []


# --- URLs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "http://provider.example.com/",
        "ftp://provider.example.com/",
        "file:///etc/passwd",
        "gopher://provider.example.com/",
        "//provider.example.com/",
        "https://",
        "https:///path",
        "https://user@provider.example.com/",
        "https://user:password@provider.example.com/",
        "https://provider.example.com/#fragment",
        "https://provider.example.com:99999/",
        "https://provider.example.com:x/",
        "https://[::1/",
        "https://provider.example.com/\r\nX: y",
        "https://provider.example.com/ path",
        "",
    ],
)
def test_urls_that_may_not_be_asked(connections, url: str):
    asked: list[str] = []
    http_client = HttpClient(resolve=lambda host, _port: asked.append(host) or [])
    assert not http_client.allows(url)
    if set(url) & {"\r", " "}:
        return  # requests drops or escapes what no URL can contain
    with pytest.raises(requests.RequestException):
        http_client.get(url)
    assert (asked, connections) == ([], [])


@pytest.mark.parametrize("host", ["x" * 64 + ".example.com", "a..example.com", "\ud800.example"])
def test_names_that_cannot_be_looked_up(host: str):
    with pytest.raises(requests.RequestException):
        HttpClient().get(f"https://{host}/")


def test_an_unknown_name():
    def resolve(_host: str, _port: int) -> list:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    told = r"\Aprovider\.example\.com: its name could not be found\Z"
    with pytest.raises(RequestRefused, match=told):
        HttpClient(resolve=resolve).get("https://provider.example.com/?secret")


def test_a_name_without_addresses():
    with pytest.raises(RequestRefused):
        HttpClient(resolve=lambda _host, _port: []).get("https://provider.example.com/")


# --- redirects, proxies, headers -----------------------------------------------------------------


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_nobody_is_redirected(local: HttpClient, server: FakeProvider, status: int):
    for target in (f"{server.issuer}/jwks", "http://169.254.169.254/", "/jwks"):
        server.reply("/moved", b"", status=status, headers={"Location": target})
        with pytest.raises(RequestRefused, match="redirect"):
            local.get(f"{server.issuer}/moved")
    assert server.seen("/jwks") == []


def test_the_environment_takes_no_part(
    local: HttpClient, server: FakeProvider, monkeypatch, tmp_path: Path
):
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
        monkeypatch.setenv(name.upper(), "http://127.0.0.1:9")
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))
    local.get(f"{server.issuer}/jwks")
    [request] = server.requests
    assert set(request.headers) == {"Host", "Accept-Encoding", "User-Agent", "Accept"}
    assert request.headers["Accept-Encoding"] == "identity"


def test_cookies_are_not_kept(local: HttpClient, server: FakeProvider):
    server.reply("/set", {}, headers={"Set-Cookie": "a=b; Path=/"})
    local.get(f"{server.issuer}/set")
    local.get(f"{server.issuer}/jwks")
    assert "Cookie" not in server.requests[-1].headers


def test_a_session_cannot_do_without_the_guard(impatient: HttpClient, server: FakeProvider):
    with requests.Session() as session:
        impatient.guard(session)
        server.reply("/slow", {}, pause=60)
        with pytest.raises(TookTooLong):
            session.get(f"{server.issuer}/slow", timeout=None, stream=True)
        with pytest.raises(RequestRefused):
            session.get("https://10.0.0.1/", verify=False, proxies={"https": server.issuer})


# --- TLS -----------------------------------------------------------------------------------------


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def test_a_certificate_of_a_trusted_authority(authority: Authority, clock: FakeClock):
    http_client = HttpClient(allow_loopback=True, tls=authority.client())
    with FakeProvider(clock, tls=authority.server("localhost")) as server:
        assert http_client.get(f"{server.issuer}/jwks").json() == {"keys": server.keys}


@pytest.mark.parametrize("fault", ["unknown authority", "other name", "expired"])
def test_certificates_that_prove_nothing(
    authority: Authority, clock: FakeClock, fault: str, tmp_path: Path
):
    shown = authority.server(
        "other.example.com" if fault == "other name" else "localhost", expired=fault == "expired"
    )
    if fault == "unknown authority":
        (tmp_path / "other").mkdir()
        authority = Authority(tmp_path / "other")
    http_client = HttpClient(allow_loopback=True, tls=authority.client())
    with FakeProvider(clock, tls=shown) as server:
        with pytest.raises(RequestRefused, match="certificate is not valid"):
            http_client.get(f"{server.issuer}/jwks")
        assert server.requests == []


def test_the_usual_authorities_are_trusted():
    assert HttpClient().tls.verify_mode.name == "CERT_REQUIRED"
    assert HttpClient().tls.check_hostname is True


@pytest.mark.parametrize("folder", ["empty", "missing"])
def test_a_machine_without_authorities_uses_those_that_come_along(monkeypatch, tmp_path, folder):
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path / folder))
    assert HttpClient().tls.cert_store_stats()["x509_ca"] > 50


def test_plain_text_where_tls_was_expected(local: HttpClient, server: FakeProvider):
    with pytest.raises(RequestRefused):
        local.get(server.issuer.replace("http:", "https:"))


# --- size ----------------------------------------------------------------------------------------


def test_the_largest_answer_is_read(local: HttpClient, server: FakeProvider):
    server.reply("/large", b"x" * MAX_RESPONSE_BYTES)
    assert len(local.get(f"{server.issuer}/large").content) == MAX_RESPONSE_BYTES


def endless() -> Reply:
    return Reply(pieces=itertools.repeat(b"x" * 65536), length=None)


@pytest.mark.parametrize(
    "reply",
    [
        Reply(b"x" * (MAX_RESPONSE_BYTES + 1)),
        Reply(gzip.compress(b"x" * (MAX_RESPONSE_BYTES + 1)), headers={"Content-Encoding": "gzip"}),
        Reply(
            zlib.compress(b"x" * 200 * MAX_RESPONSE_BYTES), headers={"Content-Encoding": "deflate"}
        ),
        Reply(
            gzip.compress(gzip.compress(b"x" * 20 * MAX_RESPONSE_BYTES)),
            headers={"Content-Encoding": "gzip, gzip"},
        ),
        Reply(
            pieces=iter([b"10000\r\n" + b"x" * 65536 + b"\r\n"] * 17 + [b"0\r\n\r\n"]),
            headers={"Transfer-Encoding": "chunked"},
        ),
    ],
    ids=["plain", "gzip", "deflate", "gzip twice", "chunked"],
)
def test_a_larger_answer_is_not_read(server: FakeProvider, reply: Reply):
    server.replies["/large"] = reply
    with pytest.raises(RequestRefused, match="too large"):
        HttpClient(allow_loopback=True).get(f"{server.issuer}/large")


def test_an_endless_answer_is_not_read(server: FakeProvider):
    server.replies["/large"] = endless()
    with pytest.raises(RequestRefused, match="too large"):
        HttpClient(allow_loopback=True).get(f"{server.issuer}/large")


def test_a_compressed_answer_is_understood(local: HttpClient, server: FakeProvider):
    server.reply("/small", gzip.compress(b"{}"), headers={"Content-Encoding": "gzip"})
    assert local.get(f"{server.issuer}/small").json() == {}


# --- time ----------------------------------------------------------------------------------------


def test_the_requests_of_a_conversation_have_a_time_together(
    local: HttpClient, server: FakeProvider
):
    url, slow = f"{server.issuer}/jwks", f"{server.issuer}/slow"
    server.reply("/slow", {}, pause=60)
    conversation = local.conversation()
    assert conversation.get(url).status_code == 200
    let_pass(conversation, local.limits.total_seconds - 0.5)
    begin = time.monotonic()
    with pytest.raises(TookTooLong):
        conversation.get(slow)
    assert time.monotonic() - begin < local.limits.seconds / 2
    # Its time is over, and nobody else's is.
    with pytest.raises(TookTooLong):
        conversation.get(url)
    assert len(server.seen("/jwks")) == 1
    assert local.conversation().get(url).status_code == 200
    assert local.get(url).status_code == 200


def test_conversations_share_what_is_there_once():
    http_client = HttpClient()
    first, second = http_client.conversation(), http_client.conversation()
    assert first.tls is second.tls is http_client.tls


def test_an_address_that_does_not_answer_leaves_time_for_the_next(monkeypatch, connections):
    monkeypatch.setattr("app.core.http_client.CONNECT_SECONDS", 0.1)
    given: list[float | None] = []
    monkeypatch.setattr(socket.socket, "settimeout", lambda _socket, value: given.append(value))
    with pytest.raises(RequestRefused):
        HttpClient(resolve=at("8.8.8.8", "8.8.4.4")).get("https://provider.example.com/")
    assert len(given) == 2
    assert max(given) <= 0.1


# --- in a serving process ------------------------------------------------------------------------

IN_A_SERVING_PROCESS = """
    from gevent import monkey
    monkey.patch_all()
    import os, socket, sys, time
    import gevent
    from app.core.http_client import HttpClient, ResponseLimits, RequestRefused, TookTooLong

    OK = b"HTTP/1.1 200 OK\\r\\n"
    ANSWERS = [
        ("http", []),
        ("http", [OK, *([b"X-A: b\\r\\n"] * 400)]),
        ("http", [OK + b"\\r\\n", *([b" "] * 400)]),
        ("http", [OK + b"Transfer-Encoding: chunked\\r\\n\\r\\n", *([b"1\\r\\n \\r\\n"] * 400)]),
        ("http", [OK + b"Content-Length: 400\\r\\n\\r\\n", *([b" "] * 399)]),
        ("http", [bytes([byte]) for byte in OK + b"X-Slow: " + b"x" * 400]),
        ("https", []),
        ("https", [b"\\x16\\x03\\x03\\x3f\\xff", *([b"x"] * 400)]),
    ]
    hung_up_on = []

    def serve(listener, pieces):
        connection, _ = listener.accept()
        try:
            for piece in pieces:
                gevent.sleep(0.05)
                connection.sendall(piece)
            while connection.recv(1024):
                pass
        except OSError:
            pass
        hung_up_on.append(listener)

    def ask(http_client, url):
        begin = time.monotonic()
        try:
            http_client.get(url)
        except TookTooLong:
            return time.monotonic() - begin < 10
        except RequestRefused as refused:
            return str(refused)

    ticks = []
    def tick():
        while True:
            ticks.append(time.monotonic())
            gevent.sleep(0.01)

    gevent.spawn(tick)
    limits = ResponseLimits(seconds=1.5)

    sleep = monkey.get_original("time", "sleep")
    def resolve_slowly(host, port):
        # What getaddrinfo is to gevent: a call in a native thread.
        gevent.get_hub().threadpool.apply(sleep, (30,))
        return []

    slow_name = HttpClient(limits=limits, resolve=resolve_slowly)
    local = HttpClient(limits=limits, allow_loopback=True)
    assert local.tls
    jobs = [gevent.spawn(ask, slow_name, "https://provider.example.com/") for _ in range(2)]
    for scheme, pieces in ANSWERS:
        listener = socket.create_server(("127.0.0.1", 0))
        gevent.spawn(serve, listener, pieces)
        url = f"{scheme}://127.0.0.1:{listener.getsockname()[1]}/"
        jobs.append(gevent.spawn(ask, local, url))
    gevent.joinall(jobs)
    gevent.sleep(0.5)
    gaps = max(b - a for a, b in zip(ticks, ticks[1:]))
    print([job.value for job in jobs], len(hung_up_on), gaps < 1)
    sys.stdout.flush()
    os._exit(0)
"""


def test_requests_end_in_time_however_their_bytes_arrive_and_hold_up_nobody():
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(IN_A_SERVING_PROCESS)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert ran.stdout.strip() == f"{[True] * 10} 8 True", ran.stderr
