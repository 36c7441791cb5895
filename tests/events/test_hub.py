"""Who is told what, and whose stream ends: the hub of one process.

Its time passes by `tick`; its events are handed to it as Redis would.
"""

import json
import logging
import socket
import threading
from contextlib import closing, suppress
from itertools import pairwise

import pytest
from prometheus_client import REGISTRY
from sqlalchemy.exc import OperationalError

from app.core.access import COMMAND_LINE
from app.core.client import Client
from app.core.errors import DatabaseUnavailable
from app.events import streams
from app.events.errors import TooManyStreams, WorkerFull
from app.events.messages import (
    EVERYBODY,
    KEEP_ALIVE,
    MAX_MESSAGE_LENGTH,
    Audience,
    Kind,
    Message,
    StorageEvent,
)
from app.events.streams import HEARTBEAT_SECONDS
from app.events.views import HUB
from app.sessions import service as sessions
from app.store import redis as redis_client
from app.team_admin import service as teams
from app.teams.models import TeamRole
from app.user_admin import service as accounts
from app.users.models import Status
from tests.support.factories import bearer_of, change_user, configure, make_user

PATH = "/auth/events/storage"


def tick(hub):
    hub.beat()
    hub.check()


@pytest.fixture
def hub(app):
    """A hub that takes streams; without its threads, which real time drives."""
    hub = app.extensions[HUB]
    hub.streams.open_up()
    yield hub
    hub.begin_shutdown()


@pytest.fixture
def watch(rt, hub):
    """Open a stream on a new session of a user."""
    opened = []

    def make(user, connection=None, on=hub):
        with rt.transaction() as session:
            pair = sessions.open_session(rt, session, user.id, Client(), is_limited=False)
        session_id = sessions.authenticate(rt, pair.access_token).session_id
        stream = on.open(user.id, session_id, connection)
        opened.append(stream)
        assert next(stream) == KEEP_ALIVE
        return stream

    yield make
    for stream in opened:
        stream.close()


def about(number, audience, rt, kind=Kind.FILE_CREATED):
    workspace = {"kind": "personal"}
    if audience.team_id is not None:
        workspace = {"kind": "team", "team_id": audience.team_id}
    event = StorageEvent(kind, workspace, rt.clock.now(), file_ids=(number,))
    return Message(audience, event).text()


def queued(stream):
    """Return the file ids of what the stream would send now; "sync" for sync.required."""
    texts = b"".join(next(stream) for _ in range(stream._queue.qsize()))
    frames = [f for f in texts.split(b"\n\n") if f.startswith(b"data: ")]
    events = [json.loads(frame.removeprefix(b"data: ")) for frame in frames]
    return ["sync" if e["kind"] == "sync.required" else e["file_ids"][0] for e in events]


def has_ended(stream):
    if not stream.has_ended:
        return False
    with pytest.raises(StopIteration):
        next(stream)
    return True


def to(user):
    return Audience(user_id=user.id)


def metric(name, **labels):
    return REGISTRY.get_sample_value(name, labels) or 0


# --- who is told -------------------------------------------------------------------------------


def test_events_reach_those_they_are_for_in_their_order(rt, hub, watch, user):
    other = make_user(rt)
    mine, mine_too, theirs = watch(user), watch(user), watch(other)
    hub.deliver(
        [
            about(1, to(user), rt),
            about(2, EVERYBODY, rt),
            about(3, to(other), rt),
            about(4, to(user), rt),
        ]
    )
    assert queued(mine) == queued(mine_too) == [1, 2, 4]
    assert queued(theirs) == [2, 3]


def test_streams_with_the_same_events_share_the_bytes(rt, hub, watch):
    opened = [watch(make_user(rt)) for _ in range(3)]
    hub.deliver([about(1, EVERYBODY, rt), about(2, EVERYBODY, rt)])
    assert len({id(next(stream)) for stream in opened}) == 1


@pytest.mark.both_databases
def test_a_team_event_reaches_the_members_of_this_moment(rt, hub, watch, user):
    member, stranger = make_user(rt), make_user(rt, role="admin")
    team = teams.create(rt, COMMAND_LINE, "Crew", user.username)
    owners, members, strangers = watch(user), watch(member), watch(stranger)

    def tell(number):
        hub.deliver([about(number, Audience(team_id=team.id), rt)])
        return [queued(stream) for stream in (owners, members, strangers)]

    assert tell(1) == [[1], [], []]
    teams.add_member(rt, COMMAND_LINE, "Crew", member.username, TeamRole.MEMBER)
    assert tell(2) == [[2], [2], []]
    teams.remove_member(rt, COMMAND_LINE, "Crew", member.username)
    assert tell(3) == [[3], [], []]
    teams.archive(rt, COMMAND_LINE, "Crew")
    assert tell(4) == [[], [], []]
    hub.deliver([about(5, Audience(team_id=999), rt), about(6, EVERYBODY, rt)])
    assert queued(members) == [6]


def test_teams_of_one_batch_are_looked_up_together(rt, hub, watch, user, monkeypatch):
    other = make_user(rt)
    one = teams.create(rt, COMMAND_LINE, "One", user.username).id
    two = teams.create(rt, COMMAND_LINE, "Two", other.username).id
    teams.add_member(rt, COMMAND_LINE, "Two", user.username, TeamRole.ADMIN)
    mine, theirs = watch(user), watch(other)
    asked = []
    real = rt.database.reading
    monkeypatch.setattr(rt.database, "reading", lambda: asked.append(1) or real())
    numbers = {1: one, 2: two, 3: one, 4: two}
    hub.deliver([about(n, Audience(team_id=team), rt) for n, team in numbers.items()])
    assert (queued(mine), queued(theirs)) == ([1, 2, 3, 4], [2, 4])
    assert len(asked) == 2  # the members, and the sessions


@pytest.mark.both_databases
def test_many_streams_share_a_query(rt, hub, watch, monkeypatch):
    opened = [watch(make_user(rt)) for _ in range(12)]
    asked = []
    real = rt.database.reading
    monkeypatch.setattr(rt.database, "reading", lambda: asked.append(1) or real())
    hub.deliver([about(1, EVERYBODY, rt)])
    assert len(asked) == 1
    assert all(queued(stream) == [1] for stream in opened)


@pytest.mark.parametrize("together", [1, 2, 5, 6, 7])
def test_nobody_is_left_out_where_parts_end(rt, hub, watch, monkeypatch, together):
    monkeypatch.setattr("app.events.hub.CHECK_BATCH_SIZE", together)
    opened = [watch(make_user(rt)) for _ in range(6)]
    hub.deliver([about(1, EVERYBODY, rt)])
    assert all(queued(stream) == [1] for stream in opened)


def test_what_is_malformed_or_too_long_is_skipped_and_counted(rt, hub, watch, user):
    stream = watch(user)
    names = ("taken", "malformed", "oversized")
    before = {name: metric("storage_events_total", outcome=name) for name in names}
    long = about(1, to(user), rt)[:-1] + " " * MAX_MESSAGE_LENGTH + "}"
    hub.deliver(["nonsense", about(2, to(user), rt), long, "{}", about(3, to(user), rt)])
    assert queued(stream) == [2, 3]
    after = {name: metric("storage_events_total", outcome=name) for name in names}
    assert [after[name] - before[name] for name in names] == [2, 2, 1]


# --- whose stream ends -------------------------------------------------------------------------


def disable(rt, user):
    accounts.update(rt, COMMAND_LINE, user.username, status=Status.DISABLED)


def force_change(rt, user):
    change_user(rt, user, must_change_password=True)


def delete(rt, user):
    accounts.delete(rt, COMMAND_LINE, user.username)


def revoke(rt, user):
    accounts.revoke_sessions(rt, COMMAND_LINE, user.username)


def expire(rt, user):
    rt.clock.advance(days=7)


@pytest.mark.both_databases
@pytest.mark.parametrize("end", [disable, force_change, delete, revoke, expire])
def test_a_stream_that_may_not_go_on_ends_before_the_next_event(rt, hub, watch, user, end):
    other = make_user(rt)
    mine = watch(user)
    end(rt, user)
    theirs = watch(other)
    hub.deliver([about(1, EVERYBODY, rt)])
    assert has_ended(mine)
    assert queued(theirs) == [1]


@pytest.mark.parametrize("end", [disable, force_change, delete, revoke, expire])
def test_and_at_the_latest_with_the_next_sign_of_life(rt, hub, watch, user, end):
    mine = watch(user)
    tick(hub)
    end(rt, user)
    for _ in range(HEARTBEAT_SECONDS):
        tick(hub)
    assert has_ended(mine)


def test_a_forced_change_counts_while_passwords_do(rt, hub, watch, user):
    configure(rt, auth_password_login_enabled=False)
    stream = watch(user)
    force_change(rt, user)
    hub.deliver([about(1, to(user), rt)])
    assert queued(stream) == [1]
    configure(rt, auth_password_login_enabled=True)
    hub.deliver([about(2, to(user), rt)])
    assert has_ended(stream)


def test_what_a_stream_outlives(rt, hub, watch, user, clock):
    """Expiry of its access token, another session's end, another role."""
    stream, other = watch(user), watch(user)
    clock.advance(hours=1)
    change_user(rt, user, role="admin")
    with rt.transaction() as session:
        sessions.queries.revoke(session, other.opened_with, rt.clock.now())
    hub.deliver([about(1, to(user), rt)])
    assert queued(stream) == [1]
    assert has_ended(other)


def test_the_word_that_sessions_ended_ends_the_stream_at_once(rt, hub, watch, user):
    mine, other = watch(user), watch(make_user(rt))
    hub._sessions_ended([str(user.id), "nonsense", "", "9" * 40, "٣"])
    assert not has_ended(mine)
    revoke(rt, user)
    hub._sessions_ended([str(user.id)])
    assert has_ended(mine)
    assert not has_ended(other)


def test_a_session_that_ended_while_its_stream_was_opened_is_noticed_within_a_tick(rt, hub, user):
    """Its word came before the stream was there to hear it."""
    with rt.transaction() as session:
        pair = sessions.open_session(rt, session, user.id, Client(), is_limited=False)
    principal = sessions.authenticate(rt, pair.access_token)
    revoke(rt, user)
    hub._sessions_ended([str(user.id)])
    with closing(hub.open(user.id, principal.session_id, None)) as stream:
        next(stream)
        tick(hub)
        assert has_ended(stream)


def test_sessions_that_end_are_announced_after_the_commit(rt, api, user, wait_for):
    heard = []
    with rt.redis.client.pubsub() as subscription:
        subscription.subscribe(redis_client.SESSIONS_CHANNEL)

        def hears():
            message = subscription.get_message(timeout=0.1)
            if message is not None and message["type"] == "message":
                heard.append(message["data"])
            return heard

        api.login(user).ok()
        ways = (
            lambda: api.post("/auth/logout").ok(),
            lambda: revoke(rt, user),
            lambda: disable(rt, user),
            lambda: delete(rt, user),
        )
        for way in ways:
            heard.clear()
            way()
            assert wait_for(hears) == [str(user.id)]


# --- signs of life -----------------------------------------------------------------------------


def test_every_stream_gets_one_sign_of_life_a_round(rt, hub, watch, user):
    early = watch(user)
    for _ in range(5):
        tick(hub)
    late = watch(user)
    beats = {early: [], late: []}
    for number in range(3 * HEARTBEAT_SECONDS):
        tick(hub)
        for stream, ticks in beats.items():
            if stream._queue.qsize():
                assert next(stream) == KEEP_ALIVE
                ticks.append(number)
    for ticks in beats.values():
        assert len(ticks) == 3
        assert {later - earlier for earlier, later in pairwise(ticks)} == {15}
    assert beats[early][0] == 9
    assert beats[late][0] == 14


def test_a_sign_of_life_waits_for_no_database(rt, hub, watch, user, monkeypatch):
    stream, before = watch(user), []
    reading = rt.database.reading

    def looked_up():
        before.append(stream._queue.qsize())
        return reading()

    monkeypatch.setattr(rt.database, "reading", looked_up)
    tick(hub)  # what is fresh is looked at
    before.clear()
    for _ in range(HEARTBEAT_SECONDS):
        tick(hub)
    assert before == [1]


def test_what_a_tick_takes_delays_no_other(hub, clock, monkeypatch):
    """Thousands of checks take their time, and fifteen ticks are fifteen seconds all the same."""
    takes = [0.25, 0.5, 3.5, 0.25, 0.0]
    waits = []

    class Stopped:
        def wait(self, seconds):
            waits.append(seconds)
            clock.advance(seconds=seconds)
            return not takes

    monkeypatch.setattr(hub, "_stopped", Stopped())
    hub._every_second(lambda: clock.advance(seconds=takes.pop(0)))
    assert waits == [1, 0.75, 0.5, 0, 0.75, 1]


def test_a_sign_of_life_is_left_out_where_something_waits(rt, hub, watch, user):
    stream = watch(user)
    hub.deliver([about(1, to(user), rt)])
    for _ in range(3 * HEARTBEAT_SECONDS):
        tick(hub)
    assert KEEP_ALIVE not in next(stream)


# --- slow readers ------------------------------------------------------------------------------


def test_who_does_not_read_gets_one_sync_required_for_what_is_lost(rt, hub, watch, user):
    slow, quick = watch(user), watch(user)
    before = metric("storage_event_syncs_total", reason="slow_reader")
    got = []
    for first in range(0, 3000, 100):
        hub.deliver([about(n, to(user), rt) for n in range(first, first + 100)])
        got += queued(quick)
        assert slow._queued_bytes <= streams.MAX_QUEUED_BYTES
    assert got == list(range(3000))
    late = queued(slow)
    assert late[0] == "sync"
    assert late[1:] == list(range(3000))[-len(late) + 1 :]
    assert late.count("sync") == 1
    assert metric("storage_event_syncs_total", reason="slow_reader") > before
    hub.deliver([about(3000, to(user), rt)])
    assert (queued(slow), queued(quick)) == ([3000], [3000])


def test_a_reader_that_waits_is_woken(rt, hub, watch, user, wait_for):
    stream = watch(user)
    got = []
    reader = threading.Thread(target=lambda: got.extend(stream), daemon=True)
    reader.start()
    hub.deliver([about(1, to(user), rt)])
    wait_for(lambda: got)
    revoke(rt, user)
    hub._sessions_ended([str(user.id)])
    reader.join(10)
    assert not reader.is_alive()
    assert len(got) == 1


@pytest.fixture
def line():
    """A connection: the service's end, and the client's."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def test_who_is_stuck_when_its_stream_ends_is_hung_up_on(rt, hub, watch, user, line):
    ours, theirs = line
    theirs.setblocking(False)
    watch(user, connection=ours)
    prompt = watch(user)
    revoke(rt, user)
    hub._sessions_ended([str(user.id)])
    prompt.close()
    hub.beat()
    with pytest.raises(BlockingIOError):
        theirs.recv(1)
    hub.beat()
    assert theirs.recv(1) == b""


def test_a_client_that_hangs_up_gives_its_seat_back(rt, hub, watch, user, line):
    ours, theirs = line
    stream = watch(user, connection=ours)
    hub.beat()
    assert hub.streams._count == 1
    theirs.close()
    hub.beat()
    assert has_ended(stream)
    assert hub.streams._count == 0
    stream.close()
    stream.close()
    assert hub.streams._count == 0
    assert hub.streams.all() == []
    assert rt.redis.client.keys("gatehouse:user_streams:*") == []
    hub.beat()


# --- the database is away ------------------------------------------------------------------------


@pytest.fixture
def database_away(rt, monkeypatch):
    """Let every look at sessions and teams fail, until told otherwise."""

    def lose(error=None):
        def reading():
            raise error or DatabaseUnavailable

        monkeypatch.setattr(rt.database, "reading", reading)

    yield lose
    monkeypatch.undo()


@pytest.mark.parametrize(
    "error", [DatabaseUnavailable(), OperationalError("SELECT", {}, Exception("gone"))]
)
def test_events_are_withheld_and_sync_required_follows(
    rt, hub, watch, user, clock, database_away, monkeypatch, error
):
    stream = watch(user)
    database_away(error)
    hub.deliver([about(1, to(user), rt)])
    tick(hub)
    assert queued(stream) == []
    for _ in range(HEARTBEAT_SECONDS):
        tick(hub)
    assert next(stream) == KEEP_ALIVE
    monkeypatch.undo()
    # Soon: streams shall not be the last to recover.
    clock.advance(seconds=1)
    tick(hub)
    assert queued(stream) == ["sync"]
    tick(hub)
    assert queued(stream) == []


def test_a_database_that_does_not_answer_is_asked_now_and_then(
    rt, hub, watch, user, clock, monkeypatch
):
    """Each attempt may take seconds, in which no stream would get its sign of life."""
    watch(user)
    asked = []

    def look_up(*_, **__):
        asked.append(clock.monotonic())
        raise DatabaseUnavailable

    monkeypatch.setattr("app.sessions.queries.list_open_among", look_up)
    for _ in range(20):
        hub.deliver([about(1, to(user), rt)])
        tick(hub)
        clock.advance(seconds=0.25)
    assert len(asked) == 5


def lines(caplog):
    return [one.getMessage() for one in caplog.records if one.name == "app.events.hub"]


def test_a_database_that_goes_and_comes_back_is_two_lines_of_the_log(
    rt, hub, watch, user, clock, database_away, monkeypatch, caplog
):
    caplog.set_level(logging.WARNING)
    watch(user)
    for _ in range(2):
        caplog.clear()
        database_away()
        hub.deliver([about(1, to(user), rt)])
        for _ in range(5):
            clock.advance(seconds=1)
            tick(hub)
        [told] = lines(caplog)
        assert told.startswith(
            "events are held back: the database does not answer: DatabaseUnavailable: "
        )
        monkeypatch.undo()
        for _ in range(5):
            clock.advance(seconds=1)
            tick(hub)
        assert lines(caplog) == [told, "events are delivered again: the database answers"]


def test_a_sign_of_life_asks_no_database(rt, hub, watch, user, database_away):
    """Which may hang for minutes."""
    stream = watch(user)
    database_away(AssertionError())
    for _ in range(HEARTBEAT_SECONDS):
        hub.beat()
    assert next(stream) == KEEP_ALIVE


def test_even_an_unexpected_failure_loses_nothing_silently(
    rt, hub, watch, user, database_away, monkeypatch
):
    stream = watch(user)
    database_away(ZeroDivisionError())
    with suppress(ZeroDivisionError):
        hub.deliver([about(1, to(user), rt)])
    monkeypatch.undo()
    tick(hub)
    assert queued(stream) == ["sync"]


def test_nor_does_one_while_everybody_is_told_of_a_gap(
    rt, hub, watch, user, database_away, monkeypatch
):
    stream = watch(user)
    database_away(ZeroDivisionError())
    with suppress(ZeroDivisionError):
        hub.sync_after_gap()
    monkeypatch.undo()
    tick(hub)
    assert queued(stream) == ["sync"]


# --- how many ------------------------------------------------------------------------------------


@pytest.fixture
def small(make_app):
    """Build the hubs of two workers of an installation that allows few streams."""

    def make(**caps):
        found = []
        for _ in range(2):
            hub = make_app(**caps).extensions[HUB]
            hub.streams.open_up()
            found.append(hub)
        return found

    return make


def test_an_account_has_so_many_streams_over_all_workers(rt, small, watch, user):
    one, two = small(sse_per_user=3)
    opened = [watch(user, on=one), watch(user, on=two), watch(user, on=one)]
    before = metric("storage_event_streams_refused_total", reason="user")
    for hub in (one, two):
        with pytest.raises(TooManyStreams) as refusal:
            watch(user, on=hub)
        assert refusal.value.retry_after == 15
    watch(make_user(rt), on=one)
    opened[1].close()
    watch(user, on=one)
    assert metric("storage_event_streams_refused_total", reason="user") == before + 2
    assert (one.streams._count, two.streams._count) == (4, 0)


def a_round(hub):
    for _ in range(HEARTBEAT_SECONDS):
        hub.beat()


def test_streams_of_a_worker_that_died_count_no_more(rt, small, watch, user, clock):
    dead, alive = small(sse_per_user=2)
    watch(user, on=dead)
    watch(user, on=dead)
    clock.advance(seconds=44)
    a_round(alive)
    with pytest.raises(TooManyStreams):
        watch(user, on=alive)
    clock.advance(seconds=1)
    watch(user, on=alive)


def test_a_worker_that_lives_keeps_its_permits(rt, small, watch, user, clock):
    one, two = small(sse_per_user=1)
    watch(user, on=one)
    for _ in range(5):
        clock.advance(seconds=30)
        a_round(one)
        with pytest.raises(TooManyStreams):
            watch(user, on=two)


def test_a_redis_that_was_emptied_is_told_again(rt, small, watch, user):
    one, two = small(sse_per_user=2)
    watch(user, on=one)
    watch(user, on=one)
    rt.redis.client.flushdb()
    with pytest.raises(TooManyStreams):
        watch(user, on=one)
    a_round(one)
    with pytest.raises(TooManyStreams):
        watch(user, on=two)


def test_a_worker_that_stops_releases_its_permits(rt, small, watch, user):
    one, two = small(sse_per_user=1)
    watch(user, on=one)
    one.begin_shutdown()
    watch(user, on=two)
    two.begin_shutdown()
    assert rt.redis.client.keys("gatehouse:user_streams:*") == []


def test_without_redis_each_worker_counts_alone(rt, make_app, watch, user, tmp_path):
    gone = redis_client.connect(f"unix://{tmp_path}/gone.sock")
    hub = make_app(redis=gone, sse_per_user=2).extensions[HUB]
    hub.streams.open_up()
    first = watch(user, on=hub)
    watch(user, on=hub)
    with pytest.raises(TooManyStreams):
        watch(user, on=hub)
    first.close()
    watch(user, on=hub)
    a_round(hub)


def test_permits_acquired_while_redis_was_away_are_told_when_it_is_back(
    rt, small, watch, user, clock
):
    one, two = small(sse_per_user=2)
    rt.redis.client.config_set("maxmemory", "1")
    rt.redis.client.config_set("maxmemory-policy", "noeviction")
    try:
        watch(user, on=one)
        watch(user, on=one)
    finally:
        rt.redis.client.config_set("maxmemory", "0")
    clock.advance(seconds=2)
    a_round(one)
    with pytest.raises(TooManyStreams):
        watch(user, on=two)


def test_a_permit_that_is_released_while_it_is_renewed_stays_released(
    rt, small, watch, user, monkeypatch
):
    hub, _ = small(sse_per_user=1)
    stream, redis = watch(user, on=hub), hub._rt.redis.fail_fast.client
    pipeline = redis.pipeline

    def crossing(**options):
        patch.undo()
        stream.close()
        return pipeline(**options)

    with monkeypatch.context() as patch:
        patch.setattr(redis, "pipeline", crossing)
        hub.streams.permits.renew([stream])
    assert rt.redis.client.keys("gatehouse:user_streams:*") == []


def test_a_worker_has_so_many_streams(rt, small, watch):
    hub, _ = small(sse_per_worker=2)
    first = watch(make_user(rt), on=hub)
    watch(make_user(rt), on=hub)
    with pytest.raises(WorkerFull):
        watch(make_user(rt), on=hub)
    first.close()
    watch(make_user(rt), on=hub)


def test_the_open_streams_are_told_in_the_metrics(rt, hub, watch, user):
    before = metric("storage_event_streams")
    stream = watch(user)
    assert metric("storage_event_streams") == before + 1
    stream.close()
    assert metric("storage_event_streams") == before


# --- over HTTP -----------------------------------------------------------------------------------


def first_bytes(app, path, method="GET", **headers):
    """Return an answer of which only the first part is read."""
    response = app.test_client().open(f"/api/v1{path}", method=method, headers=headers)
    body = next(response.iter_encoded(), b"")
    response.close()
    return response, body


def test_the_answer_is_an_event_stream(app, rt, hub, user):
    bearer = bearer_of(rt, app, user)
    response, body = first_bytes(app, PATH, **bearer.headers, **{"Last-Event-ID": "17"})
    assert response.status_code == 200
    assert body == KEEP_ALIVE
    assert response.headers["Content-Type"] == "text/event-stream"
    assert response.headers["Cache-Control"] == "no-cache"
    assert response.headers["Content-Encoding"] == "identity"
    assert response.headers["X-Accel-Buffering"] == "no"
    assert "Content-Length" not in response.headers
    assert hub.streams._count == 0


def test_head_shows_the_headers_and_takes_no_seat(app, rt, hub, user):
    answer = bearer_of(rt, app, user).call("HEAD", PATH)
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "text/event-stream"
    assert answer.body == b""
    assert hub.streams._count == 0


def test_a_service_that_stops_takes_no_stream(app, rt, hub, watch, user):
    stream = watch(user)
    hub.begin_shutdown()
    assert has_ended(stream)
    answer = bearer_of(rt, app, user).get(PATH)
    assert (answer.status, answer.body) == (204, b"")
    assert answer.headers["Cache-Control"] == "no-cache"


def test_refusals_are_envelopes(make_app, rt, watch, user):
    app = make_app(sse_per_user=1, sse_per_worker=1)
    hub = app.extensions[HUB]
    hub.streams.open_up()
    watch(user, on=hub)
    bearer_of(rt, app, user).get(PATH).fails(503, "internal_server_error")
    hub._rt.config.__dict__["sse_per_worker"] = 5
    assert bearer_of(rt, app, user).get(PATH).fails(429, "rate_limited").retry_after == 15


def test_a_limited_session_has_no_stream(rt, hub, api, user):
    change_user(rt, user, must_change_password=True)
    api.login(user).ok()
    api.get(PATH).fails(403, "auth.password_change_required")


@pytest.mark.own_application
def test_while_the_database_is_away_no_stream_is_opened(app, rt, hub, user, database_away):
    bearer = bearer_of(rt, app, user)
    rt.database.connect = lambda *_: (_ for _ in ()).throw(DatabaseUnavailable())
    bearer.get(PATH).fails(503, "database.error")
