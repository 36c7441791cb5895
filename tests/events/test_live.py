"""The stream as several real processes serve it."""

import os
import signal
import socket
import threading
import time
from contextlib import ExitStack

import psutil
import pytest
from redis import Redis
from sqlalchemy import text

from app.core.access import COMMAND_LINE
from app.events import messages
from app.events.hub import TICK_SECONDS
from app.events.messages import EVERYBODY, Audience, Kind, Message, StorageEvent
from app.events.streams import MAX_QUEUED_BYTES
from app.store.redis import EVENTS_CHANNEL
from app.team_admin import service as teams
from app.teams.models import TeamRole
from tests.support.factories import change_user, make_user
from tests.support.live import LiveService, eventually
from tests.support.streams import PATH, OpenStream

pytestmark = pytest.mark.postgres

LONG = pytest.mark.soak
PATIENT = """
from pathlib import Path
exec(compile(Path("gunicorn.conf.py").read_text(), "gunicorn.conf.py", "exec"))
graceful_timeout = 60
"""


def publish(rt, audience, number):
    workspace = {"kind": "personal"}
    if audience.team_id is not None:
        workspace = {"kind": "team", "team_id": audience.team_id}
    event = StorageEvent(Kind.FILE_UPDATED, workspace, rt.clock.now(), file_ids=(number,))
    messages.publish(rt, audience, event)


def numbers(events):
    return ["sync" if e["kind"] == "sync.required" else e["file_ids"][0] for e in events]


@pytest.fixture
def user(live, root):
    return make_user(live.rt)


@pytest.fixture(scope="module")
def started():
    """Services that several tests use."""
    services = {}
    yield services
    for service in services.values():
        service.stop()


@pytest.fixture
def second(live, started, tmp_path_factory):
    """Another instance on the same database and the same Redis, patient when it has to stop."""
    if "second" not in started:
        folder = tmp_path_factory.mktemp("second")
        patient = folder / "patient.conf.py"
        patient.write_text(PATIENT)

        class Patient(LiveService):
            gunicorn_config = str(patient)

        started["second"] = Patient(folder, live.rt.config.database_url, live.rt.config.redis_url)
    started["second"].wait_for_subscriptions()
    return started["second"]


@pytest.fixture
def four(live, second, user):
    """A stream on each worker of both instances, all of one session; and its client."""
    with ExitStack() as stack:
        client = stack.enter_context(live.client())
        client.login(user).ok()
        streams = stream_on_each_worker(live, client, stack)
        yield client, streams + stream_on_each_worker(second, client, stack)


def stream_on_each_worker(service, client, stack):
    peers = stack.enter_context(service.client_on_each_worker())
    for peer in peers:
        peer.cookies = dict(client.cookies)
    return [OpenStream(peer, shares=True).opened() for peer in peers]


# --- two instances -------------------------------------------------------------------------------


def test_an_event_reaches_the_streams_of_every_worker_of_every_instance(live, four, user):
    _, streams = four
    publish(live.rt, Audience(user_id=user.id), 1)
    publish(live.rt, EVERYBODY, 2)
    for stream in streams:
        assert numbers([stream.event(), stream.event()]) == [1, 2]


def test_a_logout_on_one_instance_ends_the_streams_of_all(live, second, four):
    client, streams = four
    # A session is looked at again with the first tick after its stream was opened, too.
    time.sleep(1.5 * TICK_SECONDS)
    with second.client() as elsewhere:
        elsewhere.cookies = dict(client.cookies)
        elsewhere.post("/auth/logout").ok()
    for stream in streams:
        stream.wait_for_end()
        # Not only when the next sign of life was due.
        assert stream.comments == 1


def test_a_member_removed_on_one_instance_hears_nothing_more_on_the_other(
    live, second, four, user, root, sign_in, watch
):
    _, streams = four
    team = teams.create(live.rt, COMMAND_LINE, "Crew", root.username)
    audience = Audience(team_id=team.id)
    owner = watch(sign_in(root))
    teams.add_member(live.rt, COMMAND_LINE, "Crew", user.username, TeamRole.MEMBER)
    publish(live.rt, audience, 1)
    teams.remove_member(second.rt, COMMAND_LINE, "Crew", user.username)
    # What is published before the removal may be looked at after it.
    publish(live.rt, EVERYBODY, 2)
    for stream in streams:
        # They are told to load anew by joining and by leaving, in between.
        heard = [number for number in numbers(read_until(stream, 2)) if number != "sync"]
        assert heard in ([1, 2], [2])
    for number in (3, 4):
        publish(live.rt, audience, number)
    publish(live.rt, EVERYBODY, 5)
    for stream in streams:
        assert [number for number in numbers(read_until(stream, 5)) if number != "sync"] == [5]
    assert numbers(read_until(owner, 5)) == [1, 2, 3, 4, 5]


# --- one stream ----------------------------------------------------------------------------------


def test_the_answer_as_it_is_on_the_wire(live, user, sign_in, watch):
    stream = watch(sign_in(user))
    expected = {
        "content-type": "text/event-stream",
        "cache-control": "no-cache",
        "connection": "keep-alive",
        "content-encoding": "identity",
        "x-accel-buffering": "no",
        "transfer-encoding": "chunked",
    }
    assert {name: stream.headers[name] for name in expected} == expected
    assert stream.comments == 1


def test_a_proxy_that_speaks_http_1_0_gets_it_unframed(live, user, sign_in):
    client = sign_in(user)
    with socket.create_connection(("127.0.0.1", live.port), timeout=10) as proxy:
        cookie = f"Cookie: service_access={client.cookies['service_access']}"
        proxy.sendall(f"GET {PATH} HTTP/1.0\r\n{cookie}\r\n\r\n".encode())
        received = read_until_frame(proxy, b": keep-alive\n\n")
        assert b"chunked" not in received
        eventually(lambda: open_streams(client) == 1, "the stream")
        for number in (1, 2):
            publish(live.rt, EVERYBODY, number)
            frame = read_until_frame(proxy, b"}\n\n")
            assert frame.startswith(b'data: {"kind":"file.updated"')
        client.post("/auth/logout").ok()
        assert proxy.recv(100) == b""


def read_until_frame(connection, end):
    received = b""
    while not received.endswith(end):
        received += connection.recv(4096)
    return received


def test_who_leaves_in_the_middle_of_a_frame_gives_the_seat_back(live, user, sign_in):
    client = sign_in(user)
    with OpenStream(client, buffer=4096) as stuck:
        stuck.opened()
        for number in range(1500):
            event = StorageEvent(
                Kind.FILE_UPDATED, {"kind": "personal"}, live.rt.clock.now(), **pad(number)
            )
            messages.publish(live.rt, EVERYBODY, event)
        assert open_streams(client) == 1
        stuck.shut_down()
        eventually(lambda: open_streams(client) == 0, "its end")


def test_a_sign_of_life_comes_every_fifteen_seconds(live, user, sign_in, watch):
    client = sign_in(user)
    began = time.monotonic()
    stream = watch(client)
    stream.wait(lambda: stream.comments == 2, "the second comment", 60)
    # A second less where the stream was opened just before a tick, another where that was late.
    assert 12.5 < time.monotonic() - began < 29


def test_after_its_end_the_connection_serves_further_requests(live, user, sign_in):
    client = sign_in(user)
    with live.client() as other:
        other.cookies = dict(client.cookies)
        receive = other.send("GET", PATH)
        eventually(lambda: open_streams(client) == 1, "the stream")
        client.post("/auth/logout").ok()
        answer = receive()
        assert answer.body.startswith(b": keep-alive\n\n")
        other.cookies = {}
        other.get("/health")


def open_streams(client):
    return int(metric(client, "storage_event_streams"))


def metric(client, name):
    text = client.get("/health/metrics").text
    lines = [line for line in text.splitlines() if line.startswith(f"{name} ")]
    return float(lines[0].rpartition(" ")[2]) if lines else 0.0


def test_whoever_hangs_up_is_noticed_at_once(live, user, sign_in, watch):
    client = sign_in(user)
    opened = [watch(client) for _ in range(5)]
    eventually(lambda: open_streams(client) == 5, "five streams")
    began = time.monotonic()
    for stream in opened:
        stream.close()
    eventually(lambda: open_streams(client) == 0, "no stream", 10)
    # Left alone, the kernel would tell only after the second sign of life.
    assert time.monotonic() - began < 10


def test_the_streams_of_a_killed_worker_end_and_the_others_go_on(live, user, sign_in):
    with ExitStack() as stack:
        lost, kept = stream_on_each_worker(live, sign_in(user), stack)
        os.kill(live.worker_at(lost.local_port), signal.SIGKILL)
        lost.wait_for_end()
        live.wait_for_subscriptions()
        publish(live.rt, EVERYBODY, 1)
        assert numbers([kept.event()]) == [1]


def test_streams_hold_no_connection_and_share_one_subscription(live, sign_in, watch):
    clients = [sign_in(make_user(live.rt)) for _ in range(2)]
    with Redis.from_url(live.rt.config.redis_url, decode_responses=True) as redis:
        subscribed = redis.pubsub_numsub(EVENTS_CHANNEL)
        # Other services of the suite are on this Redis, with what a burst has left them.
        connected = len(redis.client_list())
        # More than both workers have connections to the database.
        opened = [watch(client) for client in clients for _ in range(20)]
        publish(live.rt, EVERYBODY, 1)
        for stream in opened:
            assert numbers([stream.event()]) == [1]
        assert redis.pubsub_numsub(EVENTS_CHANNEL) == subscribed
        assert len(redis.client_list()) - connected < len(opened)
    with live.rt.reading() as connection:
        number = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        assert connection.execute(text(number)).scalar() < len(opened)
    for client in clients:
        client.me().ok()


# --- slow readers, nonsense, bursts --------------------------------------------------------------


def pad(number):
    """Return an event of a few kilobytes."""
    return {"file_ids": (number, *range(10_000, 10_400))}


@pytest.mark.parametrize("many", [3000, pytest.param(8000, marks=LONG)])
def test_a_slow_reader_delays_nobody_and_grows_nothing(live, user, sign_in, watch, many):
    client = sign_in(user)
    quick = watch(client)
    with ExitStack() as stack:
        slow = [stack.enter_context(OpenStream(client, buffer=4096)).opened() for _ in range(5)]
        before = memory(live)
        rt, audience = live.rt, Audience(user_id=user.id)
        got = []
        for number in range(many):
            event = StorageEvent(
                Kind.FILE_UPDATED, {"kind": "personal"}, rt.clock.now(), **pad(number)
            )
            messages.publish(rt, audience, event)
            if number % 100 == 99:
                quick.wait(lambda n=number: quick._events[-1:] and last(quick) == n, "the events")
                got += numbers(quick._events)
                quick._events.clear()
        assert got == list(range(many))
        # Megabytes went by; each slow stream holds its queue at most.
        assert memory(live) - before < 5 * 2 * MAX_QUEUED_BYTES / 2**20 + 12
        for stream in slow:
            late = stream.events_for(1)
            publish(rt, audience, many)
            late = numbers([*late, *read_until(stream, many)])
            # In order, then one sync.required for what is lost, then in order again.
            lost = late.index("sync")
            assert late.count("sync") == 1
            assert late[:lost] == list(range(lost))
            assert sorted(late[lost + 1 :]) == late[lost + 1 :]


def last(stream):
    return numbers(stream._events[-1:])[0]


def read_until(stream, number):
    events = [stream.event()]
    while numbers(events[-1:]) != [number]:
        events.append(stream.event())
    return events


def memory(live):
    return sum(psutil.Process(pid).memory_info().rss for pid in live.workers()) / 2**20


@pytest.mark.parametrize("many", [5000, pytest.param(100_000, marks=LONG)])
def test_a_burst_loses_nothing_silently(live, user, sign_in, watch, many):
    opened = [watch(sign_in(user)) for _ in range(4)]
    is_over = threading.Event()
    publisher = threading.Thread(target=burst, args=(live, user, many, is_over))
    publisher.start()
    try:
        for stream in opened:
            insist_on_no_silent_loss(numbers(read_until(stream, many)))
    finally:
        is_over.set()
        publisher.join()


def insist_on_no_silent_loss(told):
    expected = 0
    for number in told:
        if number == "sync":
            expected = None
            continue
        assert expected in (None, number), f"{expected} is missing"
        expected = number + 1


def burst(live, user, many, is_over):
    """Publish them as fast as it goes; then one by one what proves that all have gone by."""
    audience, now = Audience(user_id=user.id), live.rt.clock.now()
    with Redis.from_url(live.rt.config.redis_url) as redis:
        for first in range(0, many, 1000):
            with redis.pipeline(transaction=False) as pipeline:
                for number in range(first, first + 1000):
                    event = StorageEvent(
                        Kind.FILE_UPDATED, {"kind": "personal"}, now, file_ids=(number,)
                    )
                    pipeline.publish(EVENTS_CHANNEL, Message(audience, event).text())
                pipeline.execute()
    while not is_over.wait(1):
        publish(live.rt, audience, many)


# --- the stop ------------------------------------------------------------------------------------


def test_a_reload_moves_the_streams_to_new_workers(second, user, root):
    with second.client() as client, ExitStack() as stack:
        client.login(user).ok()
        stream = stack.enter_context(OpenStream(client)).opened()
        old = set(second.workers())
        os.kill(second.pid, signal.SIGHUP)
        stream.wait_for_end()
        eventually(lambda: not old & set(second.workers()), "new workers")
        second.wait_for_subscriptions()
        again = stack.enter_context(OpenStream(client)).opened()
        publish(second.rt, EVERYBODY, 1)
        assert numbers([again.event()]) == [1]


def test_a_stop_ends_the_streams_at_once(second, started, user, root):
    with second.client() as client, ExitStack() as stack:
        client.login(user).ok()
        opened = [stack.enter_context(OpenStream(client)).opened() for _ in range(10)]
        stuck = stack.enter_context(OpenStream(client, buffer=4096)).opened()
        for number in range(3000):
            publish(second.rt, EVERYBODY, number)
        # A busy service may have been too late for some, and say so in place of the last one.
        first = opened[0]
        first.wait(lambda: first._events and last(first) in {2999, "sync"}, "the events")
        began = time.monotonic()
        os.kill(second.pid, signal.SIGTERM)
        for stream in opened:
            stream.wait_for_end()
        # Before a sign of life would have found out.
        assert time.monotonic() - began < 12
        second.wait_for_end()
        del started["second"]
        second.stop()
        # Not by gunicorn's graceful time-out, who does not read included.
        assert "graceful timeout" not in second.log.read_text()
        assert stuck.local_port


# --- Redis comes and goes ------------------------------------------------------------------------


@pytest.fixture
def alone(live, own_valkey, tmp_path, user):
    """An instance whose Redis may be taken away, with one stream."""
    service = LiveService(tmp_path, live.rt.config.database_url, own_valkey.url)
    service.wait_for_subscriptions()
    with service.client() as client:
        client.login(user).ok()
        with OpenStream(client) as stream:
            yield service, stream.opened(), client
    service.stop()


def insist_on_recovery(service, stream, user):
    """sync.required arrives, and then what is published anew."""
    told = []

    def publish_and_look():
        publish(service.rt, Audience(user_id=user.id), 2)
        told.extend(numbers(stream.events_for(0.5)))
        return 2 in told

    eventually(publish_and_look, "events to flow again")
    assert "sync" in told[: told.index(2)]
    assert not stream.has_ended


def test_a_redis_that_hangs_or_restarts_costs_one_look_at_everything(alone, own_valkey, user):
    service, stream, _ = alone
    publish(service.rt, EVERYBODY, 1)
    assert numbers([stream.event()]) == [1]
    own_valkey.hang()
    assert numbers([stream.event()]) == ["sync"]
    own_valkey.resume()
    insist_on_recovery(service, stream, user)
    own_valkey.stop()
    own_valkey.start()
    insist_on_recovery(service, stream, user)


@pytest.mark.soak
def test_a_redis_that_is_away_for_a_while(alone, own_valkey, user):
    service, stream, client = alone
    own_valkey.stop()
    stream.wait(lambda: stream.comments == 2, "a sign of life", 60)
    # Told once that it is lost, not again and again.
    assert numbers(stream.events_for(0)) == ["sync"]
    client.me().ok()
    # A session's end is noticed without Redis, too.
    with OpenStream(client) as other:
        other.opened()
        change_user(service.rt, user, must_change_password=True)
        other.wait_for_end(60)
        change_user(service.rt, user, must_change_password=False)
    # Open before Redis is back: who comes later has missed nothing and is told nothing.
    with OpenStream(client) as again:
        again.opened()
        own_valkey.start()
        insist_on_recovery(service, again, user)
