"""SQLite gave the ids of deleted rows out again until version 0.1; the migration that ends this."""

import json
import re

import pytest
import sqlalchemy as sa
from flask_migrate import downgrade, upgrade

from app.core.config import MIGRATIONS
from tests.support.factories import make_user
from tests.upgrade.test_version_0_1 import ITS_REVISION, fill

pytestmark = pytest.mark.sqlite

ENTRY = (
    "INSERT INTO audit_log (user_id, action, entity_type, entity_id, details, created_at)"
    " VALUES (0, 'user_login', :about, :number, :details, '2026-01-01 00:00:00.000000')"
)


@pytest.fixture
def database_url(tmp_path):
    return f"sqlite:///{tmp_path / 'gatehouse.db'}"


@pytest.fixture
def app(make_app, database_url):
    app = make_app()
    with app.app_context():
        upgrade(str(MIGRATIONS), ITS_REVISION)
        fill(database_url)
        yield app


@pytest.mark.usefixtures("app")
def test_rows_constraints_and_indexes_are_kept(rt):
    before = content(rt)
    upgrade(str(MIGRATIONS), "0009")
    assert content(rt) == before
    assert rows(rt, "PRAGMA foreign_key_check") == []
    downgrade(str(MIGRATIONS), ITS_REVISION)
    assert content(rt) == before


@pytest.mark.usefixtures("app")
def test_ids_that_only_the_audit_log_knows_are_not_given_out(rt):
    with rt.transaction() as session:
        for about, number, details in (
            ("user", 39, {}),
            ("team", 50, {"removed_user_id": 40}),
            ("auth_session", None, {"passkey_id": 60}),
            ("system_config", None, None),
        ):
            values = {"about": about, "number": number, "details": json.dumps(details)}
            session.execute(sa.text(ENTRY), values)
    upgrade(str(MIGRATIONS), "0009")
    sequences = dict(rows(rt, "SELECT name, seq FROM sqlite_sequence"))
    assert (sequences["teams"], sequences["passkeys"]) == (50, 60)
    upgrade(str(MIGRATIONS), "head")
    assert make_user(rt).id == 41


def rows(rt, statement):
    with rt.reading() as session:
        return [tuple(row) for row in session.execute(sa.text(statement))]


def content(rt):
    """Return each table's columns and constraints, indexes and rows, without the primary key's."""
    found = {}
    for name, text in rows(rt, "SELECT name, sql FROM sqlite_master WHERE type = 'table'"):
        if name.startswith(("sqlite_", "alembic_")):
            continue
        text = re.sub(r"(CONSTRAINT \w+ )?PRIMARY KEY( \(id\)| AUTOINCREMENT)", "", text)
        parts = re.split(r",\s(?!\S*[)])", text.partition("(")[2].rpartition(")")[0])
        parts = sorted(filter(None, (part.strip() for part in parts)))
        indexes = f"SELECT sql FROM sqlite_master WHERE type = 'index' AND tbl_name = '{name}'"
        found[name] = parts, sorted(rows(rt, indexes), key=str), rows(rt, f"SELECT * FROM {name}")
    return found
