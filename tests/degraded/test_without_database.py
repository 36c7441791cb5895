"""The database is lost: 503 while it lasts, no restart afterwards."""

import json
import logging
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import Mock

import psycopg2
import pytest
import sqlalchemy as sa

from app.core.errors import DatabaseUnavailable
from app.login import second_factor
from app.sessions import service as sessions
from app.settings import keys
from app.store import database as databases
from tests.support.api import ApiClient
from tests.support.challenge import give_totp, start_login, verify
from tests.support.commands import CommandLine
from tests.support.factories import audit_rows
from tests.support.privileges import bound_by_modes
from tests.support.races import run_concurrently

pytestmark = [pytest.mark.both_databases, pytest.mark.own_application]


class Sqlite:
    """Loses the file and finds it again."""

    def __init__(self, rt):
        self._rt = rt
        self._path = Path(sa.make_url(rt.config.database_url).database)
        self._away = self._path.with_suffix(".away")

    def lose(self):
        self._rt.database.close()
        self._path.rename(self._away)
        self._path.mkdir()

    def restore(self):
        self._path.rmdir()
        self._away.rename(self._path)

    @contextmanager
    def read_only(self):
        self._rt.database.close()  # who has opened the file may go on writing
        self._path.chmod(0o400)
        with bound_by_modes():
            yield
        self._rt.database.close()
        # Its log was made meanwhile, with the mode of the file.
        for path in self._path.parent.glob(f"{self._path.name}*"):
            path.chmod(0o600)


class Postgres:
    """Shuts the database for new connections and ends the old ones."""

    def __init__(self, rt):
        url = sa.make_url(rt.config.database_url).set(drivername="postgresql")
        self._name = url.database
        admin = url.set(database="postgres").render_as_string(hide_password=False)
        self._admin = psycopg2.connect(admin)
        self._admin.autocommit = True

    def _execute(self, statement, *values):
        with self._admin.cursor() as cursor:
            cursor.execute(statement, values)

    def cut_connections(self):
        self._execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
            " WHERE datname = %s AND application_name = 'gatehouse'",
            self._name,
        )

    def lose(self):
        self._execute(f'ALTER DATABASE "{self._name}" ALLOW_CONNECTIONS false')
        self.cut_connections()

    def restore(self):
        self._execute(f'ALTER DATABASE "{self._name}" ALLOW_CONNECTIONS true')

    @contextmanager
    def read_only(self):
        self._execute(f'ALTER DATABASE "{self._name}" SET default_transaction_read_only = on')
        self.cut_connections()
        try:
            yield
        finally:
            self._execute(f'ALTER DATABASE "{self._name}" RESET default_transaction_read_only')
            self.cut_connections()

    def close(self):
        self._admin.close()


@pytest.fixture
def database(rt):
    server = Sqlite(rt) if rt.database.is_sqlite else Postgres(rt)
    yield server
    if isinstance(server, Postgres):
        server.restore()
        server.close()


def test_everything_that_needs_it_says_so(database, signed_in, user):
    body = {"current_password": user.password, "new_password": "another good one"}
    database.lose()
    for _ in range(2):
        for answer in (
            signed_in.me(),
            signed_in.get("/auth/sessions"),
            signed_in.refresh(),
            signed_in.put("/auth/password", body),
            signed_in.delete("/auth/sessions/others"),
            signed_in.stranger().login(user),
            signed_in.post("/auth/check"),
            signed_in.sign_up_admin(),
            signed_in.post("/auth/logout"),
        ):
            answer.fails(503, "database.error")
            assert answer.set_cookies == {}
    database.restore()


def test_the_log_tells_why(database, signed_in, caplog):
    caplog.set_level(logging.ERROR)
    database.lose()
    signed_in.me().fails(503, "database.error")
    signed_in.patch("/auth/profile", {"display_name": "Ada"}).fails(503, "database.error")
    database.restore()
    reasons = [r.getMessage() for r in caplog.records if "the database failed" in r.getMessage()]
    assert len(reasons) == 2
    for reason in reasons:
        assert "OperationalError" in reason
        assert "unable to open" in reason or "not currently accepting connections" in reason


def test_settings_that_cannot_be_read_are_told_once_and_so_is_their_return(
    database, rt, clock, caplog
):
    caplog.set_level(logging.WARNING, "app.store.live_settings")
    for _ in range(2):
        rt.settings.renew()
        caplog.clear()
        database.lose()
        for _ in range(5):
            clock.advance(seconds=1)
            assert rt.settings.get(keys.ACCESS_TTL_SECONDS) == 900
        database.restore()
        for _ in range(5):
            clock.advance(seconds=1)
            rt.settings.renew()
        *reasons, end = [record.getMessage() for record in caplog.records]
        beginning = "keeping the settings last read: the database does not answer: "
        assert reasons
        assert len(reasons) == len(set(reasons)) <= 2  # the cut, and why there is no other
        assert all(reason.startswith(beginning) for reason in reasons)
        assert "unable to open" in reasons[-1] or "not currently accepting" in reasons[-1]
        assert end == "settings are current again: the database answers"


@pytest.fixture
def short_timeout_app(make_app, monkeypatch):
    """An application with one connection, for which nobody waits for long."""
    monkeypatch.setattr(databases, "POOL_TIMEOUT_SECONDS", 0.1)
    return make_app(database_pool=1)


def test_the_log_tells_that_no_connection_was_free(short_timeout_app, caplog):
    caplog.set_level(logging.ERROR)
    api = ApiClient(short_timeout_app)
    rt = short_timeout_app.extensions["gatehouse"]
    with rt.database.engine.connect():
        api.sign_up_admin().fails(503, "database.error")
        api.post("/auth/check").fails(503, "database.error")
    told = [record.getMessage() for record in caplog.records]
    assert told == ["the database failed: NoConnectionFree: no connection was free for 0.1 s"] * 2


def test_a_refused_login_is_logged_without_the_session_it_did_not_get(
    database, signed_in, user, monkeypatch, caplog
):
    caplog.set_level(logging.INFO)
    lost = Mock(side_effect=DatabaseUnavailable)
    monkeypatch.setattr(sessions, "pair", lost)
    signed_in.stranger().login(user).fails(503, "database.error")
    [line] = [r for r in caplog.records if "/auth/login 503" in r.getMessage()]
    assert not hasattr(line, "session_id")


def test_it_recovers_by_itself(database, signed_in):
    database.lose()
    for _ in range(12):  # more often than the pool has connections
        signed_in.me().fails(503, "database.error")
    database.restore()
    signed_in.me().ok()
    signed_in.refresh().ok()


@pytest.mark.parametrize("moment", ["before", "during"])
def test_a_login_that_waits_is_finished_once_it_is_back(
    database, rt, api, user, clock, monkeypatch, moment
):
    """Also when it was lost after the code was looked at: nothing is used up."""
    enabled = give_totp(rt, user, clock)
    flow_token = start_login(api, user)
    real = second_factor.mfa.check_totp

    def look_and_lose(*arguments):
        proof = real(*arguments)
        database.lose()
        return proof

    with monkeypatch.context() as patch:
        if moment == "during":
            patch.setattr(second_factor.mfa, "check_totp", look_and_lose)
        else:
            database.lose()
        answer = verify(api, flow_token, enabled.app.code()).fails(503, "database.error")
        assert answer.set_cookies == {}
    database.restore()
    # A connection from before the loss may cost one more answer.
    answers = [verify(api, flow_token, enabled.app.code())]
    if answers[0].status == 503:
        answers.append(verify(api, flow_token, enabled.app.code()))
    answers[-1].ok()


def test_liveness_does_not_depend_on_it_readiness_does(database, api):
    database.lose()
    assert api.get("/health").status == 200
    api.get("/health/ready").fails(503, "database.error")
    database.restore()
    api.get("/health/ready").ok()


@pytest.mark.postgres
def test_cut_connections_cost_no_read(database, app, signed_in):
    """However many of them the pool holds."""
    clients = [signed_in.twin() for _ in range(6)]
    for answer in run_concurrently([client.me for client in clients]):
        answer.ok()
    for _ in range(3):
        database.cut_connections()
        for client in clients:
            client.me().ok()
            client.get("/auth/sessions").ok()


@pytest.mark.postgres
def test_cut_connections_cost_no_change_either(database, signed_in, user):
    """A restarted PostgreSQL costs nothing, however much later somebody comes."""

    def change_everything():
        signed_in.refresh().ok()
        signed_in.patch("/auth/profile", {"display_name": "Somebody"}).ok()
        signed_in.stranger().login(user).ok()

    change_everything()
    for _ in range(2):
        database.cut_connections()
        change_everything()
    signed_in.me().ok()


@contextmanager
def connection_cut_at(rt, event):
    """Have PostgreSQL end the connection of whoever makes it come to `event`."""
    with rt.transaction() as session:
        session.execute(
            sa.text(
                "CREATE FUNCTION cut() RETURNS trigger LANGUAGE plpgsql AS"
                " 'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NEW; END'"
            )
        )
        session.execute(sa.text(f"CREATE TRIGGER cut BEFORE {event} EXECUTE FUNCTION cut()"))
    yield
    with rt.transaction() as session:
        session.execute(sa.text("DROP FUNCTION cut CASCADE"))


@pytest.mark.postgres
def test_a_cut_in_the_middle_of_a_login_leaves_nothing_behind(database, rt, api, user):
    with connection_cut_at(rt, "INSERT ON audit_log"):
        answer = api.login(user).fails(503, "database.error")
    assert answer.set_cookies == {}
    rt.database.close()  # whatever else was cut
    assert audit_rows(rt, "user_login") == []
    api.login(user).ok()
    assert len(api.get("/auth/sessions").ok()) == 1


@pytest.mark.postgres
@pytest.mark.parametrize("event", ["INSERT ON login_sessions", "UPDATE ON mfa_factors"])
def test_a_cut_in_the_middle_of_a_second_step_uses_up_no_code(
    database, rt, api, user, clock, event
):
    enabled = give_totp(rt, user, clock)
    flow_token = start_login(api, user)
    with connection_cut_at(rt, event):
        answer = verify(api, flow_token, enabled.app.code()).fails(503, "database.error")
    assert answer.set_cookies == {}
    rt.database.close()
    verify(api, flow_token, enabled.app.code()).ok()
    assert len(api.get("/auth/sessions").ok()) == 1


@contextmanager
def no_room(rt):
    """Let the database grow no more."""
    if rt.database.is_sqlite:

        def limit(connection, *_):
            connection.execute("PRAGMA max_page_count=1")  # SQLite takes the present size

        sa.event.listen(rt.database.engine, "connect", limit)
        rt.database.close()
        yield
        sa.event.remove(rt.database.engine, "connect", limit)
        rt.database.close()
        return
    with rt.transaction() as session:
        session.execute(
            sa.text(
                "CREATE FUNCTION fill() RETURNS trigger LANGUAGE plpgsql AS"
                " 'BEGIN RAISE EXCEPTION ''full'' USING ERRCODE = ''disk_full''; END'"
            )
        )
        session.execute(
            sa.text("CREATE TRIGGER fill BEFORE INSERT ON audit_log EXECUTE FUNCTION fill()")
        )
    yield
    with rt.transaction() as session:
        session.execute(sa.text("DROP FUNCTION fill CASCADE"))


def test_a_full_disk_refuses_changes_and_keeps_nothing_of_them(rt, signed_in, user):
    before = len(audit_rows(rt))
    body = {"custom": {"text": "x" * 100_000}}
    with no_room(rt):
        signed_in.patch("/auth/preferences", body).fails(503, "database.error")
        signed_in.me().ok()
    assert len(audit_rows(rt)) == before
    signed_in.patch("/auth/preferences", body).ok()


def test_one_that_takes_no_changes_is_a_database_that_is_lost(database, signed_in, user, rt):
    """Such as a standby that a failover has left us with for a moment."""
    with database.read_only():
        if not rt.database.is_sqlite:
            signed_in.me().fails(503, "database.error")
        signed_in.refresh().fails(503, "database.error")
        signed_in.patch("/auth/profile", {"display_name": "Ada"}).fails(503, "database.error")
        signed_in.stranger().login(user).fails(503, "database.error")
        signed_in.get("/health/ready").fails(503, "database.error")
        text = signed_in.get("/health/metrics").text
        assert 'dependency_up{dependency="database"} 0.0' in text
        assert 'dependency_up{dependency="redis"} 1.0' in text
    signed_in.refresh().ok()
    signed_in.get("/health/ready").ok()


def test_doctor_tells_of_a_database_that_takes_no_changes(database, app):
    with database.read_only():
        findings = {
            check["check"]: check
            for check in json.loads(CommandLine(app)("doctor", "--json").stdout)["checks"]
        }
    found = findings["database"]
    assert found["level"] == "fail"
    assert "cannot be written" in found["message"]


@pytest.mark.sqlite
def test_readiness_waits_for_no_writer(rt, api):
    with rt.database.transaction():
        api.get("/health/ready").ok()


@pytest.mark.sqlite
def test_doctor_leaves_nothing_behind_in_the_database(rt, app):
    CommandLine(app)("doctor")
    assert "examined" not in sa.inspect(rt.database.engine).get_table_names()


def test_the_metrics_are_told_and_tell_it(database, api):
    database.lose()
    text = api.get("/health/metrics").text
    assert 'dependency_up{dependency="database"} 0.0' in text
    assert 'dependency_up{dependency="redis"} 1.0' in text
    assert 'dependency_response_seconds{dependency="database"}' not in text
    assert "mail_outbox_mails{" not in text
    database.restore()
    assert 'dependency_up{dependency="database"} 1.0' in api.get("/health/metrics").text
