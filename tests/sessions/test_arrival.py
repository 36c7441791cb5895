"""When a request reached the service, which tells an honest race from a replay (decision E7)."""

from datetime import timedelta

import pytest

from app.web import peer
from app.web.client_connection import WorkerBody
from app.web.runtime import runtime

SINCE = timedelta(milliseconds=2)


class Body(WorkerBody):
    """What the worker tells of a request that came in a moment ago, after standing still."""

    connection = None
    is_first_of_connection = False
    allow_slow_body = limit_rest_of_body = None

    def __init__(self, clock, stops):
        self._clock = clock
        self._stops = iter(stops)
        self._came_at = clock.now() - SINCE

    def seconds_since_arrival(self):
        self._clock.advance(seconds=next(self._stops, 0))
        return (self._clock.now() - self._came_at).total_seconds()


@pytest.mark.any_database
@pytest.mark.parametrize("stops", [[], [0.5], [0.5, 0.1]])
def test_a_process_that_stands_still_makes_no_request_older(app, clock, stops):
    with app.test_request_context("/"):
        assert runtime().clock is clock
        came_at = clock.now() - SINCE
        environ = peer.request.environ
        environ["wsgi.input"] = Body(clock, stops)
        environ[peer.TAKEN_AT] = clock.now()
        assert peer.arrived_at() == came_at
