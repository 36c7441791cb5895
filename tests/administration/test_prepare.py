"""`flask prepare` beside and after another version."""

import logging
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from app.commands import run
from app.installation import preparation
from app.storage_policies.models import StoragePolicy
from app.store.db import Base
from tests.support.factories import at_revision, count

MIGRATION_LOCK = 4_242_001  # migrations/env.py


@pytest.mark.both_databases
@pytest.mark.usefixtures("without_storage_route")
def test_what_a_newer_version_migrated_is_left_as_it_is(line, rt):
    """To go back, and for a machine that is not upgraded yet and restarts."""
    with at_revision(rt, "9999"):
        assert line.json("prepare") == {"prepared": False}
        assert count(rt, StoragePolicy) == 0
        with rt.reading() as connection:
            assert revision(connection) == "9999"
    assert line.json("prepare") == {"prepared": True}
    assert count(rt, StoragePolicy) == 1


@pytest.mark.postgres
def test_so_is_what_a_newer_one_migrates_meanwhile(line, rt, wait_for):
    with at_revision(rt, "0005"), ThreadPoolExecutor(1) as pool:
        with rt.transaction() as newer:
            newer.execute(sa.text(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})"))
            prepared = pool.submit(line.json, "prepare")
            wait_for(lambda: is_awaited(rt, "advisory"))
            newer.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
        assert prepared.result(timeout=10) == {"prepared": False}


@pytest.mark.postgres
def test_a_migration_gives_way_to_a_request_that_holds_one_table_and_needs_another(
    line, rt, wait_for
):
    with at_revision(rt, "0025"), ThreadPoolExecutor(1) as pool:
        with rt.transaction() as request:
            request.execute(sa.text("SELECT 1 FROM teams"))
            prepared = pool.submit(line.json, "prepare")
            wait_for(lambda: is_awaited(rt, "relation"))
            for table in Base.metadata.tables:
                request.execute(sa.text(f'SELECT 1 FROM "{table}"'))
            assert not prepared.done()
        assert prepared.result(timeout=10) == {"prepared": True}


@pytest.mark.postgres
def test_where_nothing_is_to_be_migrated_no_table_is_locked(line, rt):
    with rt.transaction() as request:
        request.execute(sa.text("SELECT 1 FROM teams"))
        assert line.json("prepare") == {"prepared": True}


@pytest.mark.parametrize("error", [NotImplementedError, RecursionError, ValueError])
def test_a_bug_in_a_migration_is_told_with_its_traceback(app, monkeypatch, caplog, error):
    """Of a RuntimeError in its hooks gunicorn shows the text alone, and this one has none."""

    def fail(_rt):
        raise error

    monkeypatch.setattr(preparation, "migrate", fail)
    caplog.set_level(logging.ERROR)
    assert run(app, "prepare") == 1
    assert "in fail" in caplog.text
    assert error.__name__ in caplog.text


@pytest.mark.parametrize(
    ("code", "exit_code", "told"), [("why", 1, "why\n"), (3, 3, ""), (None, 0, "")]
)
def test_a_migration_may_end_the_process(app, monkeypatch, capsys, code, exit_code, told):
    monkeypatch.setattr(preparation, "migrate", lambda _rt: sys.exit(code))
    assert run(app, "prepare") == exit_code
    assert capsys.readouterr().err == told


def revision(connection):
    return connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar_one()


def is_awaited(rt, kind):
    """Tell whether somebody waits for a lock of this kind, in this database."""
    statement = sa.text(
        "SELECT 1 FROM pg_locks WHERE NOT granted AND locktype = :kind"
        " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    )
    with rt.reading() as connection:
        return connection.execute(statement, {"kind": kind}).all()
