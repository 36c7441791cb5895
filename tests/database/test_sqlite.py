"""One process's SQLite connections while others write."""

import sqlite3
import threading
import time
from contextlib import closing

import pytest
import sqlalchemy as sa

from app.core.errors import DatabaseUnavailable
from app.store import sqlite
from app.users import queries
from app.users.models import User

pytestmark = [pytest.mark.sqlite, pytest.mark.own_application]


@pytest.fixture
def elsewhere(rt):
    """Another process's connection."""
    path = sa.make_url(rt.config.database_url).database
    with closing(sqlite3.connect(path, check_same_thread=False)) as connection:
        yield connection


def rename(rt, user):
    with rt.transaction() as session:
        mine = sa.update(User).where(User.id == user.id)
        return session.execute(mine.values(session_version=9)).rowcount


def test_a_locked_account_leaves_no_cursor_open(rt, user, elsewhere):
    """It would hold an old state of the database, on which nothing can be written."""
    with rt.transaction() as session:
        queries.lock(session, user.id)
    elsewhere.execute("UPDATE users SET session_version = session_version + 1")
    elsewhere.commit()
    assert rename(rt, user) == 1


def test_hardly_anybody_waits_in_c(rt):
    """There, nobody else of the worker would be served meanwhile."""
    with rt.reading() as session:
        assert session.scalar(sa.text("PRAGMA busy_timeout")) < 10


def test_a_writer_waits_for_that_of_another_process(rt, user, elsewhere):
    elsewhere.execute("BEGIN IMMEDIATE")
    began = time.monotonic()
    threading.Timer(0.1, elsewhere.rollback).start()
    assert rename(rt, user) == 1
    assert time.monotonic() - began >= 0.1


@pytest.mark.parametrize("who", ["this process", "another"])
def test_whose_turn_does_not_come_gives_up(rt, user, elsewhere, monkeypatch, who):
    monkeypatch.setattr(sqlite, "LOCK_SECONDS", 0.05)
    if who == "another":
        elsewhere.execute("BEGIN IMMEDIATE")
        with pytest.raises(DatabaseUnavailable):
            rename(rt, user)
        elsewhere.rollback()
    else:
        with rt.transaction(), pytest.raises(DatabaseUnavailable):
            rename(rt, user)
    assert rename(rt, user) == 1


def test_a_reader_waits_for_no_writer(rt, user):
    with rt.transaction() as session:
        session.execute(sa.update(User).values(session_version=9))
        with rt.reading() as reading:
            assert reading.scalar(sa.select(sa.func.max(User.session_version))) == 1
