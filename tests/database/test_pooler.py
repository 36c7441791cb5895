"""Behind a pooler in transaction mode each message may meet another of its connections."""

import pytest
from sqlalchemy.exc import IntegrityError

from app.core.database.locks import NamedLock
from app.factory import create_app
from tests.support import servers
from tests.support.api import ApiClient
from tests.support.commands import CommandLine
from tests.support.factories import count
from tests.support.pooler import Pooler
from tests.support.prepared import ADD, READ, RENAME, names

pytestmark = pytest.mark.postgres


@pytest.fixture
def pooler(database_url):
    with servers.short_folder() as folder, Pooler(database_url, folder) as pooler:
        yield pooler


@pytest.fixture
def app(pooler, redis_url, tmp_path, clock):
    config = servers.cheap_config(tmp_path / "instance", pooler.url, redis_url, rate_limits=False)
    app = create_app(config, clock=clock)
    yield app
    app.extensions["gatehouse"].close()


def test_a_statement_runs_whichever_connection_knows_it(rt, pooler):
    for number in range(6):
        if number == 3:
            pooler.replace()
        rows = rt.database.change_then_read(ADD.step(new=f"new{number}"), READ.step(like="new%"))
        assert len(rows) == number + 1
        there, back = ("new0", "newer0"), ("newer0", "new0")
        assert rt.database.change_together((RENAME, there)) == 1
        steps = [RENAME.step(old=old, new=new) for old, new in (back, there, back)]
        assert rt.database.change_together(*steps) == 1
        assert len(names(rt)) == number + 1


def test_steps_on_a_connection_that_does_not_know_them_are_one_transaction(rt, pooler):
    before = count(rt, NamedLock)
    for _ in range(4):
        pooler.replace()
        with pytest.raises(IntegrityError):
            rt.database.change_together(ADD.step(new="new1"), ADD.step(new="setup"))
        assert count(rt, NamedLock) == before
    assert rt.database.change_together(ADD.step(new="new1")) == 1


def test_nobody_at_the_service_notices(app, pooler, user):
    client = ApiClient(app)
    for _ in range(3):
        client.login(user).ok()
        for _ in range(5):
            client.me().ok()
            client.refresh().ok()
        pooler.replace()
        client.get("/auth/sessions").ok()
        client.me().ok()
        client.delete("/auth/sessions/others").ok()
        client.post("/auth/logout").ok()
    assert CommandLine(app).json("prepare") == {"prepared": True}
