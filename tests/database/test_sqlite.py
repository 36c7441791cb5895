"""What keeps one process's SQLite connections fit while others write."""

import gc
import sqlite3
import time

import pytest
import sqlalchemy as sa

from app.core.database.sqlite_writing import PATIENCE_SECONDS
from app.users import queries


@pytest.fixture
def elsewhere(rt):
    """Another process's connection."""
    if not rt.database.is_sqlite:
        pytest.skip("PostgreSQL has no snapshot that outlives a transaction")
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
    assert time.monotonic() - began < PATIENCE_SECONDS / 2
