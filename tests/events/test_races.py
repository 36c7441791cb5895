"""Streams that are opened at the same moment."""

import pytest

from app.core.client import Client
from app.events.errors import TooManyStreams, WorkerFull
from app.events.views import HUB
from app.sessions import service as sessions
from tests.support.races import run_concurrently

pytestmark = pytest.mark.both_databases


def opener(rt, hub, user):
    with rt.transaction() as session:
        pair = sessions.open_session(rt, session, user.id, Client(), is_limited=False)
    session_id = sessions.authenticate(rt, pair.access_token).session_id

    def attempt():
        try:
            return hub.open(user.id, session_id, None)
        except (TooManyStreams, WorkerFull):
            return None

    return attempt


def hubs(make_app, number, **caps):
    found = [make_app(**caps).extensions[HUB] for _ in range(number)]
    for hub in found:
        hub.streams.open_up()
    return found


def test_an_account_never_gets_more_than_its_share(make_app, rt, user):
    workers = hubs(make_app, 4, sse_per_user=7)
    opened = run_concurrently([opener(rt, workers[n % 4], user) for n in range(24)])
    streams = [stream for stream in opened if stream is not None]
    assert len(streams) == 7
    run_concurrently([stream.close for stream in streams])
    assert sum(hub.streams._count for hub in workers) == 0
    again = run_concurrently([opener(rt, workers[n % 4], user) for n in range(24)])
    assert sum(stream is not None for stream in again) == 7


def test_a_worker_never_holds_more_than_its_share(make_app, rt, user):
    [hub] = hubs(make_app, 1, sse_per_worker=5)
    opened = run_concurrently([opener(rt, hub, user) for _ in range(16)])
    assert sum(stream is not None for stream in opened) == 5


def test_streams_opened_while_the_service_stops_end(make_app, rt, user):
    [hub] = hubs(make_app, 1, sse_per_user=100)
    *opened, _ = run_concurrently([*(opener(rt, hub, user) for _ in range(16)), hub.begin_shutdown])
    assert all(stream is None or stream.has_ended for stream in opened)
