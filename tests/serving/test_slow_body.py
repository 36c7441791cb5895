"""A request body that does not arrive ends with its time, not with the client's patience."""

import io
import socket

import gevent
import pytest

from app.serving import worker
from app.serving.worker import Connection, TimedBody
from tests.support.api import ApiClient
from tests.support.live import LiveService

LIMIT = 0.1


@pytest.fixture
def limit(monkeypatch):
    monkeypatch.setattr(worker, "BODY_SECONDS", LIMIT)


class Dripping:
    """A body that gives a byte after each pause."""

    def __init__(self, pause):
        self.pause = pause
        self.given = 0

    def read(self, size=-1):
        gevent.sleep(self.pause)
        self.given += 1
        return b"x"

    readline = read


def timed(body, reads=1):
    return TimedBody(body, Connection(client=None, reads=reads))


def read_all(body):
    while True:
        body.read(1)


@pytest.mark.usefixtures("limit")
@pytest.mark.parametrize("way", ["read", "readline"])
def test_a_body_that_never_comes_ends_as_a_lost_connection(way):
    with gevent.Timeout(10), pytest.raises(TimeoutError) as caught:
        getattr(timed(Dripping(pause=60)), way)(100)
    assert isinstance(caught.value, OSError)


@pytest.mark.usefixtures("limit")
def test_the_limit_is_for_the_whole_body_not_for_each_byte():
    body = Dripping(pause=LIMIT / 20)
    with gevent.Timeout(10), pytest.raises(TimeoutError):
        read_all(timed(body))
    assert 1 < body.given <= 20


@pytest.mark.usefixtures("limit")
def test_nothing_is_read_after_the_time_is_over():
    body = Dripping(pause=60)
    late = timed(body)
    for _ in range(3):
        with gevent.Timeout(10), pytest.raises(TimeoutError):
            late.read(1)
    assert body.given == 0


@pytest.mark.usefixtures("limit")
def test_a_body_in_time_is_read_as_it_is_and_leaves_no_timer_behind():
    body = timed(io.BytesIO(b"one\ntwo\nthree"))
    assert body.readline() == b"one\n"
    assert body.read(4) == b"two\n"
    assert body.read() == b"three"
    gevent.sleep(2 * LIMIT)  # a time-out left behind would strike here


def test_the_limit_of_the_service_is_half_a_minute():
    assert worker.BODY_SECONDS == 30


@pytest.mark.parametrize(("reads", "is_first"), [(1, True), (2, False), (9, False)])
def test_it_tells_whether_the_request_opened_the_connection(reads, is_first):
    assert timed(io.BytesIO(), reads).is_first_of_connection is is_first


@pytest.mark.usefixtures("limit")
def test_the_application_takes_it_for_a_client_that_went_away(app, user):
    """A refusal of the request, not a failure of the service."""
    body = timed(Dripping(pause=60))
    with gevent.Timeout(10):
        answer = ApiClient(app).post(
            "/auth/login",
            headers={"Content-Type": "application/json"},
            environ_overrides={"wsgi.input": body, "CONTENT_LENGTH": "100"},
        )
    answer.fails(400, "bad_request")


# --- the service as it runs, with a shorter limit ----------------------------------------------

CONFIG = f"""
from pathlib import Path
exec(compile(Path("gunicorn.conf.py").read_text(), "gunicorn.conf.py", "exec"))
serving_worker.BODY_SECONDS = {LIMIT}
"""
HEAD = (
    b"POST /api/v1/auth/login HTTP/1.1\r\nHost: localhost\r\n"
    b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n"
)


@pytest.fixture
def service(database_url, redis_url, tmp_path):
    config = tmp_path / "short_bodies.conf.py"
    config.write_text(CONFIG)

    class Impatient(LiveService):
        gunicorn_config = str(config)

    service = Impatient(tmp_path, database_url, redis_url, WORKERS="1")
    service.wait()
    yield service
    service.stop()


def test_a_client_that_stops_in_the_middle_of_a_body_is_hung_up_on(service):
    with socket.create_connection(("127.0.0.1", service.port), timeout=10) as slow:
        slow.sendall(HEAD + b'{"identifier": ')
        received = b""
        while data := slow.recv(65536):
            received += data
    assert received == b"" or received.startswith(b"HTTP/1.1 400 ")
    assert "Traceback" not in service.log.read_text()
    with service.client() as other:
        other.post("/auth/check").ok()


def drip(connection):
    for _ in range(1000):
        connection.sendall(b"x")
        gevent.sleep(LIMIT / 20)


def test_a_client_that_sends_its_body_a_byte_at_a_time_is_hung_up_on(service):
    with socket.create_connection(("127.0.0.1", service.port), timeout=10) as slow:
        slow.sendall(HEAD)
        with pytest.raises(OSError, match=r"Broken pipe|reset"):
            drip(slow)
