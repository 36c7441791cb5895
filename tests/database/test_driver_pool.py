"""The pool of driver connections: a turn is lost by nobody."""

import threading

import pytest

from app.core.database.driver_pool import DriverPool
from app.core.errors import DatabaseUnavailable


@pytest.fixture
def pool(rt):
    """A pool of one connection."""
    pool = DriverPool(rt.database._direct, 1, timeout_seconds=0.1)
    yield pool
    pool.close()


class CutShort(BaseException):
    """What a time-out throws into a greenlet that waits."""


def test_who_waits_in_vain_is_told_and_takes_no_turn(pool):
    connection = pool.take()
    with pytest.raises(DatabaseUnavailable):
        pool.take()
    pool.put(connection)
    assert pool.take() is connection
    pool.put(connection)


@pytest.mark.parametrize("has_turn", [False, True])
def test_who_is_cut_short_while_waiting_loses_no_turn(pool, monkeypatch, has_turn):
    connection = pool.take()

    def cut_short(*_):
        if has_turn:
            pool.put(connection)
        raise CutShort

    with monkeypatch.context() as patch:
        patch.setattr(threading.Event, "wait", cut_short)
        with pytest.raises(CutShort):
            pool.take()
    if not has_turn:
        pool.put(connection)
    assert pool.take() is connection
    pool.put(connection)
