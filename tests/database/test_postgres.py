"""How PostgreSQL is connected to."""

from contextlib import closing

import pytest
import sqlalchemy as sa

from app.factory import create_app
from tests.support import servers


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
