"""How PostgreSQL is connected to."""

import socket
from contextlib import closing
from unittest.mock import Mock
from urllib.parse import quote

import psycopg2
import pytest
import sqlalchemy as sa

from app.factory import create_app
from app.store import postgres
from tests.support import servers

pytestmark = pytest.mark.both_databases


def parameters(rt):
    with rt.database.engine.connect() as connection:
        return connection.connection.driver_connection.info.dsn_parameters


@pytest.mark.postgres
def test_a_server_that_vanishes_is_noticed_in_time(rt):
    """The kernel by itself would wait for a quarter of an hour."""
    asked = parameters(rt)
    idle, interval, count = (
        int(asked[f"keepalives_{name}"]) for name in ("idle", "interval", "count")
    )
    assert idle + interval * count <= 25
    assert int(asked["tcp_user_timeout"]) <= 25_000


@pytest.mark.postgres
def test_the_url_has_the_last_word(database_url, redis_url, tmp_path):
    named = {"keepalives_idle": "77", "application_name": "other"}
    url = sa.make_url(database_url).update_query_dict(named)
    text = url.render_as_string(hide_password=False)
    rt = create_app(servers.cheap_config(tmp_path, text, redis_url)).extensions["gatehouse"]
    with closing(rt):
        asked = parameters(rt)
    assert (asked["keepalives_idle"], asked["application_name"]) == ("77", "other")
    assert asked["connect_timeout"] == "5"


@pytest.mark.postgres
@pytest.mark.parametrize(
    "form", ["{host}/{name}", "/{name}?host={host}", "%2Fnowhere,{host}/{name}"]
)
def test_each_form_of_the_url_reaches_it(database_url, redis_url, tmp_path, form):
    known = sa.make_url(database_url)
    host = quote(str(known.query["host"]), safe="")
    url = f"postgresql://{known.username}@{form.format(host=host, name=known.database)}"
    rt = create_app(servers.cheap_config(tmp_path, url, redis_url)).extensions["gatehouse"]
    with closing(rt):
        assert parameters(rt)["dbname"] == known.database


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("db.example", {"host": "db.example,db.example", "hostaddr": "192.0.2.1,192.0.2.2"}),
        ("/run/postgresql", {"host": "/run/postgresql"}),
        (
            "/run/a,b.example&port=1,2",
            {
                "host": "b.example,b.example",
                "hostaddr": "192.0.2.1,192.0.2.2",
                "port": "2",
            },
        ),
        (
            "a.example,b.example&target_session_attrs=prefer-standby",
            {"host": "a.example,b.example"},
        ),
    ],
)
def test_the_host_is_found_before_libpq_would_wait_for_the_dns(monkeypatch, host, expected):
    """A certificate is still verified against the name. Of several, the last one is seen here."""
    found = [(2, 1, 6, "", (address, 5432)) for address in ("192.0.2.1", "192.0.2.2", "192.0.2.1")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    connected = Mock(side_effect=psycopg2.OperationalError("refused"))
    named = postgres.connect_args(f"postgresql://u@/files?host={host}")
    engine = sa.create_engine("postgresql+psycopg2://", connect_args=named)
    monkeypatch.setattr(engine.dialect, "connect", connected)
    postgres.install(engine)
    with pytest.raises(sa.exc.OperationalError, match="refused"):
        engine.connect()
    asked = connected.call_args.kwargs
    assert {name: asked[name] for name in ("host", "hostaddr", "port") if name in asked} == expected


def test_of_several_servers_the_one_connected_to_last_is_tried_first():
    tried = []

    def connect(*, host):
        tried.append(host)
        if host == "/run/a":
            raise psycopg2.OperationalError("refused")

    servers, dialect = postgres.Servers(), Mock(connect=connect)
    for _ in range(2):
        servers.connect(dialect, None, (), {"host": "/run/a,/run/b"})
    assert tried == ["/run/a", "/run/b", "/run/b"]


def test_a_host_that_is_not_found_is_a_database_that_does_not_answer(monkeypatch):
    away = socket.gaierror(socket.EAI_AGAIN, "the DNS is away")
    monkeypatch.setattr(socket, "getaddrinfo", Mock(side_effect=away))
    engine = sa.create_engine("postgresql+psycopg2://u@db.example/files")
    postgres.install(engine)
    with pytest.raises(sa.exc.OperationalError, match=r"db\.example was not found"):
        engine.connect()


def test_a_server_that_refuses_in_another_encoding_is_one_that_does_not_answer(monkeypatch):
    refusal = UnicodeDecodeError("utf-8", b"\xfcber", 0, 1, "invalid start byte")
    engine = sa.create_engine("postgresql+psycopg2://u@/files")
    monkeypatch.setattr(engine.dialect, "connect", Mock(side_effect=refusal))
    postgres.install(engine)
    with pytest.raises(sa.exc.OperationalError, match="not in UTF-8"):
        engine.connect()


@pytest.mark.postgres
def test_a_connection_that_the_server_ended_is_noticed_before_it_is_used(signed_in, rt):
    """Also one that was in use a moment ago, which is not asked whether it is there."""
    with rt.database.engine.connect() as connection:
        signed_in.me().ok()
        mine = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar()
        others = f"application_name = 'gatehouse' AND pid <> {mine}"
        ours = f"pg_stat_activity WHERE datname = current_database() AND {others}"
        end = f"SELECT pg_terminate_backend(pid, 5000) FROM {ours}"
        assert set(connection.exec_driver_sql(end).scalars()) == {True}
        signed_in.me().ok()


@pytest.mark.postgres
@pytest.mark.parametrize(("seconds", "questions"), [(3600, 0), (0, 1)])
def test_a_connection_is_asked_whether_it_is_there_after_a_rest(
    signed_in, rt, monkeypatch, seconds, questions
):
    monkeypatch.setattr(postgres, "REST_SECONDS", seconds)
    signed_in.me().ok()
    with rt.database.connect() as connection:
        driver = connection.connection.driver_connection
    asked = []

    class Noted(type(driver.cursor())):
        def execute(self, statement, *parameters):
            asked.append(statement)
            super().execute(statement, *parameters)

    driver.cursor_factory = Noted
    signed_in.me().ok()
    assert asked[:-1] == ["SELECT 1"] * questions


@pytest.mark.postgres
@pytest.mark.parametrize("default", ["serializable", "repeatable read"])
def test_transactions_see_what_others_commit_whatever_the_server_prefers(rt, user, default):
    with rt.database.connect() as connection:
        connection.exec_driver_sql(f"SET default_transaction_isolation TO '{default}'")
        driver = connection.connection.driver_connection
    with rt.transaction() as session:
        assert session.connection().connection.driver_connection is driver
        assert session.scalar(sa.text("SHOW transaction_isolation")) == "read committed"
    rt.database.close()  # the default stays with the connection


@pytest.mark.postgres
def test_reads_begin_no_transaction_also_after_one(rt, user):
    with rt.transaction() as session:
        began, later = (session.scalar(sa.text("SELECT now()")) for _ in range(2))
        assert began == later
    with rt.reading() as session:
        began, later = (session.scalar(sa.text("SELECT now()")) for _ in range(2))
        assert began < later
