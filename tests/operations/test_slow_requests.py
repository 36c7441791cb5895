"""The line that tells of a slow request, and what it waited for."""

import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial

import pytest
from flask import Response
from redis import Redis

from app.core.logs import JsonLineFormatter, RequestFields
from app.store import redis as redis_client
from app.users import queries as users
from app.web import lifecycle

PAUSE = 0.03
RENAMING = "/auth/profile", {"display_name": "Ada"}


@pytest.fixture
def slow_request_ms():
    return 10


@pytest.fixture
def app(make_app, redis_url, slow_request_ms):
    """Waits for Redis are measured by its own client.

    An application made in the test itself would take its lines of the log away from `caplog`.
    """
    return make_app(
        slow_request_ms=slow_request_ms, redis=redis_client.connect(redis_url, timeout_seconds=30)
    )


@pytest.fixture
def slow(caplog):
    caplog.set_level(logging.INFO)
    caplog.handler.addFilter(RequestFields())

    def lines():
        return [record for record in caplog.records if record.name == "gatehouse.slow"]

    return lines


@pytest.fixture
def line_of_who_waits(slow, caplog):
    """Return how to get the line of a request that had to wait.

    `hold(began, pause)` holds something up in a thread, for `pause` seconds once it has set
    `began`. A request that comes late to its wait comes again, to wait for longer; one whose waits
    are not counted stays far below half of each pause.
    """

    def line(hold, request, waited):
        for pause in (0.1, 1, 2.5):
            caplog.clear()
            began = threading.Event()
            with ThreadPoolExecutor(1) as pool:
                holding = pool.submit(hold, began, pause)
                assert began.wait(30)
                request().ok()
                holding.result()
            found = slow()
            assert len(found) <= 1
            if found and getattr(found[0], waited) >= 500 * pause:
                return found[0]
        raise AssertionError(f"{waited} is not half of the pause: {found}")

    return line


def test_a_slow_request_is_told_with_its_route_and_ids(app, signed_in, user, slow, monkeypatch):
    view = app.view_functions["sessions.revoke_session"]

    def late(**arguments):
        time.sleep(PAUSE)
        return view(**arguments)

    monkeypatch.setitem(app.view_functions, "sessions.revoke_session", late)
    answer = signed_in.delete("/auth/sessions/8c5d1f9e-0000-4000-8000-000000000000")
    answer.fails(404, "not_found")
    [line] = [record for record in slow() if record.method == "DELETE"]
    assert line.levelno == logging.WARNING
    assert line.route == "/api/v1/auth/sessions/<session_id>"
    assert line.status == 404
    assert line.duration_ms >= 1000 * PAUSE
    assert line.database_ms + line.redis_ms < line.duration_ms
    assert line.request_id == answer.headers["X-Request-ID"]
    assert line.user_id == user.id
    assert line.session_id
    assert line.getMessage().startswith(f"slow: DELETE {line.route} 404 {line.duration_ms} ms, ")
    assert '"database_ms": ' in JsonLineFormatter().format(line)


def test_the_time_that_it_waited_for_the_database_is_told(rt, signed_in, user, line_of_who_waits):
    def hold(began, pause):
        with rt.transaction() as session:
            users.lock(session, user.id)
            began.set()
            time.sleep(pause)

    line = line_of_who_waits(hold, partial(signed_in.patch, *RENAMING), "database_ms")
    assert line.database_ms <= line.duration_ms


def test_waiting_for_a_connection_is_waiting_for_the_database(rt, signed_in, line_of_who_waits):
    """A pool that is too small is what an operator looks for there."""

    def hold(began, pause):
        engine = rt.database.engine
        with ExitStack() as stack:
            for _ in range(engine.pool.size()):
                stack.enter_context(engine.connect())
            began.set()
            time.sleep(pause)

    line = line_of_who_waits(hold, partial(signed_in.patch, *RENAMING), "database_ms")
    assert line.database_ms <= line.duration_ms


def test_the_time_that_it_waited_for_redis_is_told(redis_url, api, user, line_of_who_waits):
    def hold(began, pause):
        with Redis.from_url(redis_url) as redis:
            redis.client_pause(round(1000 * pause), all=True)
            began.set()

    line = line_of_who_waits(hold, partial(api.login, user), "redis_ms")
    assert line.redis_ms <= line.duration_ms - line.database_ms


@pytest.mark.parametrize("slow_request_ms", [0])
def test_nothing_is_slow_where_that_is_switched_off(app, slow):
    app.view_functions["operations.health"] = lambda: time.sleep(PAUSE) or "ok"
    assert app.test_client().get("/health").status_code == 200
    assert slow() == []


@pytest.mark.postgres
@pytest.mark.parametrize("slow_request_ms", [30_000])
def test_what_is_sent_for_long_is_not_slow(app, slow, monkeypatch):
    """As event streams are, which begin at once."""

    def pieces():
        yield "one"
        monkeypatch.setattr(lifecycle, "perf_counter", lambda: time.perf_counter() + 60)
        yield "two"

    app.view_functions["operations.health"] = lambda: Response(pieces())
    assert app.test_client().get("/health").text == "onetwo"
    assert slow() == []
