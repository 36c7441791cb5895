"""What gunicorn refuses, what it cannot read of a body, and a body that does not arrive in time."""

import io
import socket

import gevent
import pytest

from app.web import request as request_bodies
from tests.support.api import ApiClient
from tests.support.factories import make_user
from tests.support.live import LiveService, raw

GET = "GET /api/v1/auth/me HTTP/1.1\r\nHost: localhost\r\n"
POST = (
    "POST /api/v1/auth/login HTTP/1.1\r\nHost: localhost\r\n"
    "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
)
HEAD = (
    b"POST /api/v1/auth/login HTTP/1.1\r\nHost: localhost\r\n"
    b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n"
)
CONFIG = """
from pathlib import Path
exec(compile(Path("gunicorn.conf.py").read_text(), "gunicorn.conf.py", "exec"))
from app.web import request
request.BODY_SECONDS = 0.1
"""


def status_line(front, request):
    with front.dial() as connection:
        connection.sendall(request.encode())
        return connection.recv(65536).split(b"\r\n")[0]


@pytest.mark.postgres
@pytest.mark.parametrize(
    ("request_", "status"),
    [
        ("no request\r\n\r\n", 400),
        (f"GET /api/v1/auth/me?{'x' * 9000} HTTP/1.1\r\n\r\n", 414),
        (GET + "Host: elsewhere\r\n\r\n", 400),
        (GET + "A space : b\r\n\r\n", 400),
        (GET + f"A: {'x' * 17_000}\r\n\r\n", 431),
        (GET + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", 400),
    ],
    ids=lambda value: str(value)[-40:],
)
def test_what_is_no_valid_request_is_refused(direct, request_, status):
    assert status_line(direct, request_).startswith(f"HTTP/1.1 {status} ".encode())


@pytest.mark.postgres
@pytest.mark.parametrize("order", [1, -1])
def test_cookies_in_several_fields_count_as_if_they_were_in_one(direct, order):
    """As proxies send them that take them from HTTP/2, where each may have its own field."""
    user = make_user(direct.rt, role="admin")
    with direct.client() as client:
        client.login(user).ok()
        pairs = [f"{name}={value}" for name, value in client.cookies.items()]
    pairs = ["theme=dark,wide", *pairs, "lang=de"][::order]
    fields = "".join(f"Cookie: {pair}\r\n" for pair in pairs)
    assert raw(direct, f"{GET}{fields}\r\n".encode()).ok()["username"] == user.username


@pytest.mark.postgres
@pytest.mark.parametrize("body", ["the secret word\r\n{}\r\n0\r\n\r\n", "2\r\n{}XX0\r\n\r\n"])
def test_chunks_that_are_none_are_the_clients_fault_and_not_repeated(direct, body):
    before = direct.log.read_text()
    raw(direct, (POST + body).encode()).fails(400, "bad_request")
    logged = direct.log.read_text().removeprefix(before)
    assert "POST /api/v1/auth/login 400" in logged
    assert "Traceback" not in logged
    assert "secret word" not in logged


class Dripping(io.RawIOBase):
    """A body that gives a byte after each pause."""

    def read(self, size=-1):
        gevent.sleep(0.02)
        return b"x"


@pytest.mark.parametrize("length", ["100", None])
def test_the_limit_is_for_the_whole_body_not_for_each_byte(app, user, monkeypatch, length):
    monkeypatch.setattr(request_bodies, "BODY_SECONDS", 0.1)
    chunked = {"wsgi.input_terminated": True} if length is None else {"CONTENT_LENGTH": length}
    with gevent.Timeout(10):
        answer = ApiClient(app).post(
            "/auth/login",
            headers={"Content-Type": "application/json"},
            environ_overrides={"wsgi.input": Slow(), **chunked},
        )
    answer.fails(400, "bad_request")


class Slow(Dripping):
    """A body, no read of which ends before it has all of it."""

    def read(self, size=-1):
        return b"".join(Dripping.read(self) for _ in range(100))

    def readinto(self, buffer):
        gevent.sleep(60)


@pytest.fixture
def impatient(database_url, redis_url, tmp_path):
    config = tmp_path / "short_bodies.conf.py"
    config.write_text(CONFIG)

    class Impatient(LiveService):
        gunicorn_config = str(config)

    service = Impatient(tmp_path, database_url, redis_url, WORKERS="1")
    service.wait()
    yield service
    service.stop()


@pytest.mark.postgres
def test_a_client_that_stops_in_the_middle_of_a_body_is_refused(impatient):
    with socket.create_connection(("127.0.0.1", impatient.port), timeout=10) as slow:
        slow.sendall(HEAD + b'{"identifier": ')
        assert slow.recv(65536).startswith(b"HTTP/1.1 400 ")
    assert "Traceback" not in impatient.log.read_text()
    with impatient.client() as other:
        other.post("/auth/check").ok()
