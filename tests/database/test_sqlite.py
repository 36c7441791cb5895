"""What keeps one process's SQLite connections fit while others write."""

import gc
import sqlite3
import time

import pytest
import sqlalchemy as sa

from app.core.database import sqlite_writing
from app.core.database.sqlite_writing import LOCK_TIMEOUT_SECONDS, SPIN_SECONDS, retry_while_busy
from app.core.errors import DatabaseUnavailable
from app.sessions import opening
from app.users import queries
from app.users.models import User
from tests.support.clock import FakeClock

pytestmark = pytest.mark.sqlite


@pytest.fixture
def elsewhere(rt):
    """Another process's connection."""
    with sqlite3.connect(sa.make_url(rt.config.database_url).database) as connection:
        yield connection
    connection.close()


@pytest.fixture(autouse=True)
def no_collection():
    """Keep the collector from tidying up by chance."""
    gc.disable()
    yield
    gc.enable()


def write(connection):
    connection.execute("UPDATE users SET session_version = session_version + 1")
    connection.commit()


def driver_connection(session):
    return session.connection().connection.driver_connection


def test_a_locked_account_leaves_no_cursor_open(rt, user, elsewhere):
    with rt.transaction() as session:
        queries.lock(session, user.id)
        first = driver_connection(session)
    write(elsewhere)
    with rt.transaction() as session:
        assert driver_connection(session) is first


def test_a_connection_with_a_cursor_left_open_is_replaced(rt, user, elsewhere):
    with rt.transaction() as session:
        first = driver_connection(session)
        left_open = first.cursor()
        left_open.execute("SELECT id FROM users")
    write(elsewhere)
    began = time.monotonic()
    with rt.transaction() as session:
        assert driver_connection(session) is not first
        assert queries.find_account(session, user.id) is not None
    assert time.monotonic() - began < LOCK_TIMEOUT_SECONDS / 2


class Impatient(FakeClock):
    """A clock on which a failed try takes a fifth of what is soon."""

    def sleep(self, seconds):
        super().sleep(seconds)
        self.advance(seconds=seconds + SPIN_SECONDS / 5)


def locked():
    error = sqlite3.OperationalError("database is locked")
    error.sqlite_errorcode = sqlite3.SQLITE_BUSY
    raise error


def test_a_lock_that_is_free_soon_is_tried_for_in_every_turn_and_a_later_one_after_pauses():
    clock, tries = Impatient(), iter(range(9))
    assert retry_while_busy(clock, lambda: next(tries) == 8 or locked()) is True
    assert clock.slept[:5] == [0] * 5
    assert all(0.0005 <= pause <= 0.0025 for pause in clock.slept[5:])


def test_a_lock_that_is_never_free_is_given_up():
    clock = Impatient()
    began = clock.monotonic()
    with pytest.raises(DatabaseUnavailable):
        retry_while_busy(clock, locked)
    assert LOCK_TIMEOUT_SECONDS < clock.monotonic() - began < LOCK_TIMEOUT_SECONDS + 0.01


def test_no_writer_waits_in_c(rt):
    """There, nobody else of the worker would be served meanwhile."""
    for engine in (rt.database.engine, rt.database._direct):
        with engine.connect() as connection:
            assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar() == 0


def test_others_run_while_a_writer_waits(rt, user, elsewhere):
    elsewhere.execute("BEGIN IMMEDIATE")

    class Others(FakeClock):
        def sleep(self, seconds):
            super().sleep(seconds)
            elsewhere.rollback()

    clock = rt.database._clock = Others()
    with rt.transaction() as session:
        queries.lock(session, user.id)
    assert clock.slept == [0]


@pytest.mark.parametrize("way", ["transaction", "prepared"])
def test_whose_turn_does_not_come_gives_up(rt, user, monkeypatch, way):
    """Each writer before it may take all of its patience."""
    monkeypatch.setattr(sqlite_writing, "LOCK_TIMEOUT_SECONDS", 0.01)

    def write_one():
        if way == "prepared":
            return rt.database.change_together(opening.if_unchanged().step(**nobodys_session()))
        with rt.transaction() as session:
            mine = sa.update(User).where(User.id == user.id)
            return session.execute(mine.values(session_version=9)).rowcount

    with rt.database._writer_lock, pytest.raises(DatabaseUnavailable):
        write_one()
    assert write_one() == (0 if way == "prepared" else 1)


def nobodys_session():
    columns = dict.fromkeys(opening._COLUMNS, None) | {"id": "x", "user_id": 0}
    return columns | {"status": "active", "session_version": 0, "account_created_at": None}


def test_a_reader_tries_again_while_the_file_is_locked(rt, user):
    runner, clock = rt.database._runner, FakeClock()
    rt.database._clock, rows, tries = clock, runner.rows, []

    def locked_at_first(*asked):
        tries.append(asked)
        return rows(*asked) if len(tries) == 4 else locked()

    runner.rows = locked_at_first
    assert queries.look_up_account(rt.database, user.id).id == user.id
    assert (len(tries), clock.slept) == (4, [0, 0, 0])
