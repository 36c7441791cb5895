"""A request body that does not arrive ends with its time, not with the client's patience."""

import io
import socket
import threading
import time
from contextlib import contextmanager, suppress

import gevent
import pytest
from gunicorn.http.body import Body, ChunkedReader, LengthReader
from gunicorn.http.unreader import SocketUnreader

from app.serving import body as bodies
from app.serving.body import TimedBody
from app.serving.connection import Connection
from app.web.request import PIECE_BYTES
from tests.support import images
from tests.support.api import ApiClient
from tests.support.factories import make_user
from tests.support.live import LiveService

LIMIT = 0.1
RATE = 1000


@pytest.fixture
def limit(monkeypatch):
    monkeypatch.setattr(bodies, "BODY_SECONDS", LIMIT)


class FakeTime:
    """Passes only where it is slept, which what is due meanwhile ends, as gevent's time-outs do."""

    def __init__(self):
        self.now = 5000.0
        self.pending = []

    def monotonic(self):
        return self.now

    @contextmanager
    def Timeout(self, seconds, error):  # noqa: N802 - as gevent calls it
        self.pending.append(due := (self.now + seconds, error))
        try:
            yield
        finally:
            self.pending.remove(due)

    def sleep(self, seconds):
        until = self.now + seconds
        for due, error in self.pending:
            if due <= until:
                self.now = due
                raise error
        self.now = until


@pytest.fixture
def fake(monkeypatch):
    fake = FakeTime()
    monkeypatch.setattr(bodies, "time", fake)
    monkeypatch.setattr(bodies, "gevent", fake)
    return fake


class Dripping:
    """A body that gives a byte after each pause."""

    def __init__(self, pause, sleep=gevent.sleep):
        self.pause = pause
        self.sleep = sleep
        self.given = 0

    def read(self, size=-1):
        self.sleep(self.pause)
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

    def __init__(self, sleep, speed, total=10**9):
        self.sleep = sleep
        self.speed = speed
        self.left = total

    def read(self, size):
        size = min(size, self.left)
        self.sleep(size / self.speed)
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
def test_the_limit_is_for_the_whole_body_not_for_each_byte(fake):
    body = Dripping(LIMIT / 20, fake.sleep)
    with pytest.raises(TimeoutError):
        read_all(timed(body))
    assert 19 <= body.given <= 20


@pytest.mark.usefixtures("limit")
def test_what_comes_after_the_time_is_over_is_given_to_nobody():
    late = timed(Tardy())
    for _ in range(3):
        with gevent.Timeout(10), pytest.raises(TimeoutError):
            late.read(1)


@pytest.mark.usefixtures("limit")
def test_a_body_in_time_is_read_as_it_is_and_leaves_no_timer_behind(fake):
    body = timed(io.BytesIO(b"one\ntwo\nthree"))
    assert body.readline() == b"one\n"
    assert body.read(4) == b"two\n"
    assert body.read() == b"three"
    assert fake.pending == []


def test_the_limits_of_the_service():
    assert bodies.BODY_SECONDS == 30
    # Twice Apache's default; the largest avatar at the speed of a bad line.
    assert bodies.FILE_BYTES_PER_SECOND == 1024
    assert 17 * 2**20 / bodies.MAX_FILE_SECONDS < 10 * 1024


def read_file(source, pieces=10**6):
    body = timed(source)
    body.allow_slow_body()
    got = 0
    while content := body.read(pieces):
        got += len(content)
    return got


@pytest.fixture
def rate(monkeypatch):
    monkeypatch.setattr(bodies, "BODY_SECONDS", LIMIT)
    monkeypatch.setattr(bodies, "FILE_BYTES_PER_SECOND", RATE)


@pytest.mark.usefixtures("rate")
@pytest.mark.parametrize("pieces", [7, 10**6])
def test_a_file_may_take_longer_if_it_keeps_coming(fake, pieces):
    """Asked for as much as there is, a slow sender would bring nothing before the time is over."""
    source, began = Paced(fake.sleep, 3 * RATE, total=int(15 * LIMIT * RATE)), fake.now
    assert read_file(source, pieces) == 15 * LIMIT * RATE
    assert fake.now - began == pytest.approx(5 * LIMIT)


@pytest.mark.usefixtures("rate")
@pytest.mark.parametrize("pieces", [7, 10**6])
def test_a_file_that_comes_too_slowly_ends_as_a_lost_connection(fake, pieces):
    source = Paced(fake.sleep, RATE / 3)
    with pytest.raises(TimeoutError):
        read_file(source, pieces)
    assert 10**9 - source.left < 2 * LIMIT * RATE


@pytest.mark.usefixtures("rate")
def test_what_came_fast_is_no_reason_to_wait_for_ever(fake, monkeypatch):
    monkeypatch.setattr(bodies, "MAX_FILE_SECONDS", 4 * LIMIT)
    began = fake.now
    with pytest.raises(TimeoutError):
        read_file(Paced(fake.sleep, 10**6))
    assert fake.now - began == pytest.approx(4 * LIMIT)


@pytest.mark.usefixtures("rate")
def test_nothing_but_a_file_earns_time(fake):
    began = fake.now
    with pytest.raises(TimeoutError):
        read_all(timed(Paced(fake.sleep, 10 * RATE)))
    assert fake.now - began == pytest.approx(LIMIT, rel=0.01)


@pytest.mark.usefixtures("limit")
def test_what_is_there_already_is_not_read_for_ever(fake):
    """Such a read never waits, so that no time-out could strike."""
    body = timed(io.BytesIO(bytes(10**6)))
    assert body.read(1)
    fake.now += 1.01 * LIMIT
    with pytest.raises(TimeoutError):
        body.read(1)


@pytest.mark.usefixtures("limit")
def test_a_body_that_was_read_in_time_has_ended_for_good(fake):
    """A connection may be used again, however long the answer took."""
    body = timed(io.BytesIO(b"all of it"))
    assert body.read(100) == b"all of it"
    fake.now += 2 * LIMIT
    assert body.drain() is True


@pytest.mark.usefixtures("limit")
def test_what_is_left_of_a_refused_file_earns_no_more_time(fake):
    body = timed(Dripping(LIMIT / 20, fake.sleep))
    body.allow_slow_body()
    body.limit_rest_of_body()
    began = fake.now
    with pytest.raises(TimeoutError):
        read_all(body)
    assert fake.now - began == pytest.approx(LIMIT)


def test_no_more_is_read_ahead_than_a_file_is_asked_for_at_once():
    """Gunicorn would copy what is left of a megabyte at every read."""
    asked = []

    class Arrived:
        def recv(self, size):
            asked.append(size)
            return bytes(size)

    body = timed(LengthReader(SocketUnreader(Arrived()), 10**6))
    assert len(body.read(PIECE_BYTES)) == PIECE_BYTES
    assert asked == [PIECE_BYTES]


@pytest.mark.parametrize("size", [1, 99, 100, 5000, -1])
def test_a_body_that_came_with_its_headers_needs_no_timer(fake, size):
    body, _ = counted(arrived=b"x" * 100, length=100)
    fake.Timeout = None
    got = b""
    while piece := body.read(size):
        got += piece
    assert got == b"x" * 100


@pytest.mark.parametrize("size", [1, 50, 100, -1])
@pytest.mark.parametrize("arrived", [0, 50, 99])
def test_what_may_have_to_be_waited_for_has_its_time(fake, arrived, size):
    """gunicorn asks the socket for more than it was asked for itself."""
    body, slow = counted(arrived=b"x" * arrived, length=100)
    slow.recv = lambda _size: fake.sleep(2 * bodies.BODY_SECONDS)
    with pytest.raises(TimeoutError):
        body.read(size)


def test_a_body_is_never_taken_for_more_than_its_length(fake):
    body, _ = counted(arrived=b"body" + b"GET / HTTP/1.1", length=4)
    assert (body.read(), body.read(), body.drain()) == (b"body", b"", True)


def counted(arrived, length):
    """Return a body of known length, of which so much was read with the headers; its socket."""

    class Socket:
        def recv(self, size):
            raise AssertionError(f"nobody needs {size} more")

    unreader = SocketUnreader(client := Socket())
    unreader.unread(arrived)
    return timed(Body(LengthReader(unreader, length))), client


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
def test_what_is_thrown_away_has_the_same_time(fake):
    assert timed(io.BytesIO(bytes(10**6))).drain() is True
    assert timed(Dripping(LIMIT / 20, fake.sleep)).drain() is False


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


def drip(connection, content):
    while True:
        connection.sendall(content)
        time.sleep(LIMIT / 20)


def drip_until_hung_up_on(service, content=b"x"):
    """Send a body that takes minutes; one that told to be much longer would be refused at once."""
    with socket.create_connection(("127.0.0.1", service.port), timeout=10) as slow:
        slow.sendall(HEAD.replace(b"Length: 100", b"Length: 1000000"))
        with pytest.raises(OSError, match=r"Broken pipe|reset"):
            drip(slow, content)


@pytest.mark.postgres
def test_a_client_that_sends_its_body_a_byte_at_a_time_is_hung_up_on(service):
    drip_until_hung_up_on(service)


@pytest.mark.postgres
@pytest.mark.parametrize("seconds", [3])
def test_a_picture_may_be_longer_on_its_way_than_any_other_body(service):
    user = make_user(service.rt, role="admin")
    body = images.multipart(images.encoded(images.photo(128)))

    def slowly():
        """Give half of it, which earns 20 s, and the rest once a stranger's time is over."""
        yield body[: len(body) // 2]
        drip_until_hung_up_on(service, b" " * 2 * round(bodies.FILE_BYTES_PER_SECOND * LIMIT / 20))
        yield body[len(body) // 2 :]

    with service.client() as client:
        client.login(user).ok()
        assert client.post(UPLOAD, slowly(), headers=images.headers()).ok()["applied"]


@pytest.mark.postgres
@pytest.mark.parametrize("seconds", [3])
@pytest.mark.parametrize("connection", ["keep-alive", "close"])
def test_who_sends_without_end_keeps_nobody_else_waiting(service, connection):
    """What nobody reads is thrown away, and not in one go."""
    head = (
        "POST /api/v1/auth/profile/avatar/upload HTTP/1.1\r\nHost: localhost\r\n"
        f"Connection: {connection}\r\nContent-Length: {10**12}\r\n\r\n"
    )
    is_read = threading.Event()
    lasted = []

    def send():
        began = time.monotonic()
        with socket.create_connection(("127.0.0.1", service.port), timeout=20) as endless:
            endless.sendall(head.encode())
            with suppress(ConnectionError):
                for _ in range(16):  # more than the system would keep
                    endless.sendall(bytes(2**20))
                is_read.set()
                while True:
                    endless.sendall(bytes(2**20))
        lasted.append(time.monotonic() - began)

    sender = threading.Thread(target=send)
    with service.client() as other:
        other.get("/health")
        sender.start()
        assert is_read.wait(20)
        waits = []
        while sender.is_alive() and len(waits) < 10_000:
            began = time.monotonic()
            assert other.get("/health").status == 200
            waits.append(time.monotonic() - began)
    sender.join(20)
    # The machine itself may stand still, but not for each of them.
    assert len(waits) > 10
    assert sorted(waits)[-3] < 1
    [seconds] = lasted
    assert 3 <= seconds < 20


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
