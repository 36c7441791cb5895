"""An id that others know is never given to another row."""

import pytest
import sqlalchemy as sa

from app.store.db import Base
from tests.support.api import ApiClient
from tests.support.factories import delete_user, make_user

pytestmark = pytest.mark.both_databases


@pytest.mark.usefixtures("admin")
def test_the_id_of_a_deleted_account_is_not_given_to_the_next(make_app, rt):
    earlier = make_user(rt)
    delete_user(rt, earlier)
    body = {"username": "grace", "email": "grace@example.com", "password": "a rather long password"}
    after_a_restart = ApiClient(make_app())
    assert after_a_restart.post("/auth/register", body).ok(201)["id"] > earlier.id


@pytest.mark.sqlite
def test_so_it_is_in_every_table(rt):
    with rt.reading() as session:
        made = session.execute(sa.text("SELECT name, sql FROM sqlite_master"))
        texts = dict(made.all())
    tables = [table for table in Base.metadata.tables.values() if "id" in table.c]
    numbered = [table.name for table in tables if isinstance(table.c.id.type, sa.Integer)]
    assert len(numbered) > 10
    assert [name for name in numbered if "AUTOINCREMENT" not in texts[name]] == []
