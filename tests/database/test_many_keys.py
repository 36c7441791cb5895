"""One condition for many keys, on both databases."""

import pytest
from sqlalchemy import select

from app.core.database.many_keys import among
from app.core.database.prepared import Prepared
from app.core.database.runner import compiled_for
from app.core.tokens import random_uuid
from app.factory import create_app
from app.sessions import queries
from app.sessions.models import LoginSession
from app.users.models import User
from app.web import runtime as web_runtime
from tests.support import servers
from tests.support.api import ApiClient
from tests.support.factories import make_user

BY_ID = Prepared(select(User.id).where(among(User.id, "ids")), ("ids",))
BY_NAME = Prepared(select(User.id).where(among(User.username_key, "names")), ("names",))
BY_SESSION = Prepared(select(LoginSession.id).where(among(LoginSession.id, "ids")), ("ids",))


def found(rt, prepared, keys):
    return {row[0] for row in rt.database.rows(prepared, keys)}


@pytest.mark.parametrize("number", [0, 1, 3, 2000])
def test_rows_are_found_by_number(rt, number):
    users = [make_user(rt) for _ in range(3)]
    keys = [user.id for user in users[:number]] + list(range(10_000, 10_000 + number))
    assert found(rt, BY_ID, keys) == {user.id for user in users[:number]}


def test_rows_are_found_by_text_whatever_is_in_it(rt):
    odd = [make_user(rt, username=name) for name in ("a.b", "plain")]
    keys = ["a.b", "plain", "it's", '"', "\\", "%s", "{1,2}", "😀", ""]
    assert found(rt, BY_NAME, keys) == {user.id for user in odd}


def test_rows_are_found_by_uuid(app, rt, user):
    for _ in range(2):
        ApiClient(app).login(user).ok()
    with rt.reading() as connection:
        ids = set(connection.execute(select(LoginSession.id)).scalars())
    assert found(rt, BY_SESSION, [*ids, random_uuid()]) == ids


def test_sqlite_finds_them_by_the_index(sqlite_template, tmp_path, redis_url):
    """PostgreSQL decides by the size of the table."""
    url = servers.copy_sqlite(sqlite_template, tmp_path / "copy.db")
    app = create_app(servers.cheap_config(tmp_path, url, redis_url))
    rt = app.extensions[web_runtime.EXTENSION]
    compiled = compiled_for(queries._OPEN_AMONG, rt.database.engine.dialect)
    values = compiled.bound(([random_uuid()], rt.clock.now(), True))
    with rt.reading() as connection:
        plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {compiled.text}", values).all()
    rt.close()
    assert "SEARCH login_sessions" in plan[0][3]
