"""A request body that does not arrive ends with its time, not with the client's patience."""

import io
import socket
import threading
import time

import gevent
import pytest
from gunicorn.http.body import ChunkedReader

from app.serving import body as bodies
from app.serving.body import TimedBody
from app.serving.connection import Connection
from tests.support import images
from tests.support.api import ApiClient
from tests.support.factories import make_user
from tests.support.live import LiveService

LIMIT = 0.1
RATE = 1000


@pytest.fixture
def limit(monkeypatch):
    monkeypatch.setattr(bodies, "BODY_SECONDS", LIMIT)


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


class Tardy:
    """A body whose bytes are there only once somebody has waited for them."""

    asked = 0

    def read(self, size):
        self.asked += 1
        if self.asked == 1:
            gevent.sleep(60)
        return b"x"


class Paced:
    """A body whose bytes come at a speed, and no read of which ends before it has all of them."""

    def __init__(self, speed, total=10**9):
        self.speed = speed
        self.left = total

    def read(self, size):
        size = min(size, self.left)
        gevent.sleep(size / self.speed)
        self.left -= size
        return b"x" * size


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
def test_what_comes_after_the_time_is_over_is_given_to_nobody():
    late = timed(Tardy())
    for _ in range(3):
        with gevent.Timeout(10), pytest.raises(TimeoutError):
            late.read(1)


@pytest.mark.usefixtures("limit")
def test_a_body_in_time_is_read_as_it_is_and_leaves_no_timer_behind():
    body = timed(io.BytesIO(b"one\ntwo\nthree"))
    assert body.readline() == b"one\n"
    assert body.read(4) == b"two\n"
    assert body.read() == b"three"
    gevent.sleep(2 * LIMIT)  # a time-out left behind would strike here


def test_the_limits_of_the_service():
    assert bodies.BODY_SECONDS == 30
    # Twice Apache's default; the largest avatar at the speed of a bad line.
    assert bodies.FILE_BYTES_PER_SECOND == 1024
    assert 17 * 2**20 / bodies.LONGEST_FILE_SECONDS < 10 * 1024


def read_file(source, pieces=10**6):
    body = timed(source)
    body.expect_file()
    got = 0
    with gevent.Timeout(10):
        while content := body.read(pieces):
            got += len(content)
    return got


@pytest.fixture
def rate(monkeypatch):
    monkeypatch.setattr(bodies, "BODY_SECONDS", LIMIT)
    monkeypatch.setattr(bodies, "FILE_BYTES_PER_SECOND", RATE)


@pytest.mark.usefixtures("rate")
@pytest.mark.parametrize("pieces", [7, 10**6])
def test_a_file_may_take_longer_if_it_keeps_coming(pieces):
    """Asked for as much as there is, a slow sender would bring nothing before the time is over."""
    began = time.monotonic()
    assert read_file(Paced(3 * RATE, total=int(15 * LIMIT * RATE)), pieces) == 15 * LIMIT * RATE
    assert time.monotonic() - began > 4 * LIMIT


@pytest.mark.usefixtures("rate")
@pytest.mark.parametrize("pieces", [7, 10**6])
def test_a_file_that_comes_too_slowly_ends_as_a_lost_connection(pieces):
    source = Paced(RATE / 3)
    with pytest.raises(TimeoutError):
        read_file(source, pieces)
    assert 10**9 - source.left < 2 * LIMIT * RATE


@pytest.mark.usefixtures("rate")
def test_what_came_fast_is_no_reason_to_wait_for_ever(monkeypatch):
    monkeypatch.setattr(bodies, "LONGEST_FILE_SECONDS", 4 * LIMIT)
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        read_file(Paced(10**6))
    assert 4 * LIMIT <= time.monotonic() - began < 5


@pytest.mark.usefixtures("rate")
def test_nothing_but_a_file_earns_time():
    with gevent.Timeout(10), pytest.raises(TimeoutError):
        read_all(timed(Paced(10 * RATE)))


@pytest.mark.usefixtures("limit")
def test_what_is_there_already_is_not_read_for_ever():
    """Such a read never waits, so that no time-out could strike."""
    body = timed(io.BytesIO(bytes(10**6)))
    assert body.read(1)
    until = time.monotonic() + LIMIT
    while time.monotonic() < until:
        pass
    with pytest.raises(TimeoutError):
        body.read(1)


@pytest.mark.usefixtures("limit")
def test_a_body_that_was_read_in_time_has_ended_for_good():
    """A connection may be used again, however long the answer took."""
    body = timed(io.BytesIO(b"all of it"))
    assert body.read(100) == b"all of it"
    gevent.sleep(2 * LIMIT)
    assert body.throw_away() is True


@pytest.mark.usefixtures("limit")
def test_what_is_left_of_a_refused_file_earns_no_more_time():
    body = timed(Dripping(0.01))
    body.expect_file()
    body.expect_nothing()
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        read_all(body)
    assert time.monotonic() - began < bodies.LONGEST_FILE_SECONDS / 100


def test_others_run_between_the_pieces_of_a_body_in_chunks():
    sizes = []

    class Chunked:
        reader = ChunkedReader.__new__(ChunkedReader)

        def read(self, size):
            sizes.append(size)
            return b"x" * size if len(sizes) < 5 else b""

    turns = []

    def count_turns():
        while True:
            turns.append(len(sizes))
            gevent.sleep(0)

    other = gevent.spawn(count_turns)
    body = timed(Chunked())
    while body.read(2**20):
        pass
    other.kill()
    assert set(sizes) == {bodies.PIECE_BYTES}
    assert set(range(5)) <= set(turns)


@pytest.mark.usefixtures("limit")
def test_what_is_thrown_away_has_the_same_time():
    assert timed(io.BytesIO(bytes(10**6))).throw_away() is True
    assert timed(Dripping(pause=LIMIT / 20)).throw_away() is False


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


# --- the service as it runs, with shorter limits; not a matter of databases ---------------------

CONFIG = """
from pathlib import Path
exec(compile(Path("gunicorn.conf.py").read_text(), "gunicorn.conf.py", "exec"))
from app.serving import body
body.BODY_SECONDS = {seconds}
"""
HEAD = (
    b"POST /api/v1/auth/login HTTP/1.1\r\nHost: localhost\r\n"
    b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n"
)
UPLOAD = "/auth/profile/avatar/upload"


@pytest.fixture
def seconds():
    return LIMIT


@pytest.fixture
def service(database_url, redis_url, tmp_path, seconds):
    config = tmp_path / "short_bodies.conf.py"
    config.write_text(CONFIG.format(seconds=seconds))

    class Impatient(LiveService):
        gunicorn_config = str(config)

    service = Impatient(tmp_path, database_url, redis_url, WORKERS="1")
    service.wait()
    yield service
    service.stop()


@pytest.mark.postgres
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


@pytest.mark.postgres
def test_a_client_that_sends_its_body_a_byte_at_a_time_is_hung_up_on(service):
    with socket.create_connection(("127.0.0.1", service.port), timeout=10) as slow:
        slow.sendall(HEAD)
        with pytest.raises(OSError, match=r"Broken pipe|reset"):
            drip(slow)


@pytest.mark.postgres
@pytest.mark.parametrize("seconds", [1])
def test_a_picture_may_be_longer_on_its_way_than_any_other_body(service):
    user = make_user(service.rt, role="admin")
    body = images.multipart(images.encoded(images.photo(64)))

    def slowly(content, pause):
        for at in range(0, len(content), 1 + len(content) // 20):
            yield content[at : at + 1 + len(content) // 20]
            time.sleep(pause)

    with service.client() as client:
        client.login(user).ok()
        assert client.post(UPLOAD, slowly(body, 0.1), headers=images.headers()).ok()["applied"]
        # Not even a quarter of that is allowed to who is not known.
    with service.client() as stranger, pytest.raises(OSError, match=r"Broken pipe|reset"):
        stranger.post("/auth/login", slowly(b" " * 1000, 0.1))


@pytest.mark.postgres
@pytest.mark.parametrize("seconds", [3])
@pytest.mark.parametrize("connection", ["keep-alive", "close"])
def test_who_sends_without_end_keeps_nobody_else_waiting(service, connection):
    """What nobody reads is thrown away, and not in one go."""
    head = (
        "POST /api/v1/auth/profile/avatar/upload HTTP/1.1\r\nHost: localhost\r\n"
        f"Connection: {connection}\r\nContent-Length: {10**12}\r\n\r\n"
    )
    sent = []

    def send():
        with socket.create_connection(("127.0.0.1", service.port), timeout=20) as endless:
            endless.sendall(head.encode())
            try:
                while True:
                    endless.sendall(bytes(2**20))
                    sent.append(time.monotonic())
            except ConnectionError:
                return

    sender = threading.Thread(target=send)
    with service.client() as other:
        other.get("/health")
        sender.start()
        waits = []
        while sender.is_alive() and len(waits) < 10_000:
            began = time.monotonic()
            assert other.get("/health").status == 200
            waits.append(time.monotonic() - began)
    sender.join(20)
    assert not sender.is_alive()
    assert max(waits) < 1
    assert 1 < sent[-1] - sent[0] < 10


@pytest.mark.postgres
@pytest.mark.parametrize("connection", ["keep-alive", "close"])
@pytest.mark.parametrize(
    ("path", "status"), [(UPLOAD, 401), ("/auth/login", 413), ("/auth/nothing", 404)]
)
def test_a_refusal_reaches_who_is_still_sending(live, path, status, connection):
    for _ in range(5):
        with live.client() as client:
            headers = {"Connection": connection}
            assert client.post(path, b" " * 9_000_000, headers=headers).status == status
