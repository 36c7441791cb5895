"""The line that tells of a slow request, and what it waited for."""

import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import pytest
from flask import Response
from redis import Redis

from app.core import redis as redis_client
from app.core.logs import OneJsonObject, RequestFields
from app.users import queries as users

PAUSE = 0.03


@pytest.fixture
def app(make_app, redis_url):
    """The line is due after 10 ms; waits for Redis are measured by its own client."""
    return make_app(slow_request_ms=10, redis=redis_client.connect(redis_url))


@pytest.fixture
def slow(caplog):
    caplog.set_level(logging.INFO)
    caplog.handler.addFilter(RequestFields())

    def lines():
        return [record for record in caplog.records if record.name == "gatehouse.slow"]

    return lines


@contextmanager
def held_up(hold):
    """Have `hold(began)` hold something up in a thread; `began` is to be set once it does."""
    began = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        holding = pool.submit(hold, began)
        assert began.wait(30)
        yield
        holding.result()


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
    assert '"database_ms": ' in OneJsonObject().format(line)


def test_the_time_that_it_waited_for_the_database_is_told(rt, signed_in, user, slow):
    def hold(began):
        with rt.transaction() as session:
            users.lock(session, user.id)
            began.set()
            time.sleep(PAUSE)

    with held_up(hold):
        signed_in.patch("/auth/profile", {"display_name": "Ada"}).ok()
    [line] = [record for record in slow() if record.method == "PATCH"]
    assert 500 * PAUSE <= line.database_ms <= line.duration_ms


def test_waiting_for_a_connection_is_waiting_for_the_database(rt, signed_in, slow):
    """A pool that is too small is what an operator looks for there."""

    def hold(began):
        engine = rt.database.engine
        with ExitStack() as stack:
            for _ in range(engine.pool.size()):
                stack.enter_context(engine.connect())
            began.set()
            time.sleep(PAUSE)

    with held_up(hold):
        signed_in.patch("/auth/profile", {"display_name": "Ada"}).ok()
    [line] = [record for record in slow() if record.method == "PATCH"]
    assert 500 * PAUSE <= line.database_ms <= line.duration_ms


def test_the_time_that_it_waited_for_redis_is_told(redis_url, api, user, slow):
    def hold(began):
        with Redis.from_url(redis_url) as redis:
            redis.client_pause(round(1000 * PAUSE), all=True)
            began.set()

    with held_up(hold):
        api.login(user).ok()
    [line] = [record for record in slow() if record.route == "/api/v1/auth/login"]
    assert 500 * PAUSE <= line.redis_ms <= line.duration_ms - line.database_ms


def test_nothing_is_slow_where_that_is_switched_off(make_app, user, slow):
    app = make_app(slow_request_ms=0)
    app.view_functions["operations.health"] = lambda: time.sleep(PAUSE) or "ok"
    assert app.test_client().get("/health").status_code == 200
    assert slow() == []


@pytest.mark.postgres
def test_what_is_sent_for_long_is_not_slow(make_app, slow):
    """As event streams are, which begin at once."""

    def pieces():
        yield "one"
        time.sleep(0.6)
        yield "two"

    app = make_app(slow_request_ms=500)
    app.view_functions["operations.health"] = lambda: Response(pieces())
    assert app.test_client().get("/health").text == "onetwo"
    assert slow() == []
