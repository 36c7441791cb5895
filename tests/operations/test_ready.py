"""/health/ready: what must be there, and the line of the log that tells what is not."""

import logging
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg2
import pytest
import sqlalchemy as sa

from app.operations import service
from app.store import revisions
from tests.support.factories import at_revision, audit_rows
from tests.support.live import LiveService
from tests.support.privileges import bound_by_modes

# They take away or exchange the database that the application has open.
pytestmark = pytest.mark.own_application

OLDER = "TablesOutdated: The database is at 0005, this version needs "


def statements_of(rt, ask):
    """Return what the database is asked meanwhile."""
    asked = []

    def note(_connection, _cursor, statement, *_):
        asked.append(statement)

    sa.event.listen(rt.database.engine, "before_cursor_execute", note)
    ask()
    sa.event.remove(rt.database.engine, "before_cursor_execute", note)
    return asked


def test_tables_of_an_older_version_are_not_ready_until_they_are_migrated(rt, api, caplog):
    caplog.set_level(logging.WARNING, "gatehouse.ready")
    with at_revision(rt, "0005"):
        for _ in range(3):
            api.get("/health/ready").fails(503, "database.error")
    for _ in range(3):
        api.get("/health/ready").ok()
    reason, end = caplog.messages
    assert reason.startswith(f"not ready: {OLDER}")
    assert reason.endswith("Run `flask prepare`.")
    assert end == "ready again"


def test_those_of_a_newer_version_are_ready(rt, api):
    """Or a rolling upgrade would take away all instances of the old one at once."""
    with at_revision(rt, "9999"):
        api.get("/health/ready").ok()


def test_a_database_without_tables_is_not_ready(rt, api, caplog):
    caplog.set_level(logging.WARNING, "gatehouse.ready")
    with rt.transaction() as session:
        session.execute(sa.text("DROP TABLE alembic_version"))
    api.get("/health/ready").fails(503, "database.error")
    assert "The database has no tables" in caplog.text


def test_once_they_were_found_readiness_does_not_look_for_them_again(rt, api):
    api.get("/health/ready").ok()
    statements = statements_of(rt, lambda: api.get("/health/ready").ok())
    assert statements
    assert not any("alembic_version" in statement for statement in statements)


def test_the_start_looks_so_that_no_worker_has_to(rt, api, monkeypatch, caplog):
    caplog.set_level(logging.ERROR)
    with at_revision(rt, "0005"):
        service.check_tables(rt)
    [line] = caplog.messages
    assert line.startswith(f"not ready: {OLDER}")
    service.check_tables(rt)
    assert caplog.messages == [line]
    monkeypatch.delattr(revisions, "revisions")
    api.get("/health/ready").ok()


def test_a_database_that_does_not_answer_at_the_start_is_told(rt, caplog):
    caplog.set_level(logging.ERROR)
    rt.database.close()
    file = Path(rt.database.engine.url.database)
    file.unlink()
    file.mkdir()
    service.check_tables(rt)
    assert "unable to open database file" in caplog.text


@pytest.fixture
def file(rt):
    return Path(rt.database.engine.url.database)


@pytest.mark.sqlite
def test_a_database_file_that_vanished_is_not_ready_and_not_made_anew(rt, api, caplog, file):
    """Connections that have it open go on without a word, and all they write is lost."""
    caplog.set_level(logging.WARNING, "gatehouse.ready")
    api.get("/health/ready").ok()
    away = file.rename(file.with_suffix(".away"))
    api.get("/health/ready").fails(503, "database.error")
    rt.database.close()
    api.get("/health/ready").fails(503, "database.error")
    assert not file.exists()
    away.rename(file)
    api.get("/health/ready").ok()
    assert caplog.messages == [f"not ready: FileGone: there is no file {file}", "ready again"]


@pytest.mark.sqlite
def test_another_database_file_in_its_place_is_not_ready(rt, api, caplog, file):
    caplog.set_level(logging.WARNING, "gatehouse.ready")
    api.get("/health/ready").ok()
    shutil.copyfile(file, file.with_suffix(".copy"))
    file.with_suffix(".copy").rename(file)
    for _ in range(2):
        api.get("/health/ready").fails(503, "database.error")
        rt.database.close()
    [line] = caplog.messages
    assert f"{file} is not the file that this process began with" in line


@pytest.mark.sqlite
def test_a_database_file_out_of_reach_is_not_ready(rt, api, caplog, file):
    """The folder may have been given to another user, or its disk fail."""
    caplog.set_level(logging.WARNING, "gatehouse.ready")
    api.get("/health/ready").ok()
    try:
        file.parent.chmod(0)
        with bound_by_modes():
            api.get("/health/ready").fails(503, "database.error")
            rt.database.close()
            api.get("/health/ready").fails(503, "database.error")
    finally:
        file.parent.chmod(0o700)
    api.get("/health/ready").ok()
    assert caplog.messages[-1] == "ready again"


def test_a_start_waits_once_for_a_database_that_does_not_answer_and_says_one_thing(
    rt, caplog, monkeypatch
):
    caplog.set_level(logging.WARNING)
    tried = []

    def refuse(*_arguments, **_options):
        tried.append(1)
        raise sqlite3.OperationalError("unable to open database file")

    rt.database.close()
    monkeypatch.setattr(rt.database.engine.dialect, "connect", refuse)
    service.record_start(rt)
    [line] = caplog.messages
    assert line.startswith("not ready, and the start is not recorded: OperationalError: unable to")
    assert len(tried) == 1


def test_start_and_stop_are_recorded(rt):
    service.record_start(rt)
    service.record_stop(rt)
    assert len(audit_rows(rt, "server_start")) == len(audit_rows(rt, "server_shutdown")) == 1


@pytest.mark.live
@pytest.mark.postgres
def test_a_locked_audit_log_keeps_no_service_from_starting(database_url, tmp_path, redis_url):
    """A migration locks it for as long as it takes."""
    plain = sa.make_url(database_url).set(drivername="postgresql")
    folder = tmp_path / "service"
    folder.mkdir()
    with closing(psycopg2.connect(plain.render_as_string(hide_password=False))) as connection:
        connection.cursor().execute("LOCK TABLE audit_log IN ACCESS EXCLUSIVE MODE")
        service = LiveService(folder, database_url, redis_url)
        try:
            with service.client() as client:
                service.wait_for_subscriptions()
                client.get("/health/ready").ok()
            connection.rollback()
        finally:
            service.stop()
    log = service.log.read_text()
    assert "the start is not recorded: the database gave no answer in 6 s" in log


@pytest.mark.live
def test_a_service_that_starts_on_older_tables_says_so(database_url, rt, tmp_path, redis_url):
    folder = tmp_path / "service"
    folder.mkdir()
    with at_revision(rt, "0005"):
        service = LiveService(folder, database_url, redis_url)
        try:
            with service.client() as client:
                service.wait_for_subscriptions()
                client.get("/health/ready").fails(503, "database.error")
            with at_revision(rt, "9999"), service.client() as client:
                client.get("/health/ready").ok()
        finally:
            service.stop()
    log = service.log.read_text()
    assert f"ERROR app.operations.service not ready: {OLDER}" in log
