"""Two administrators change settings at the same moment."""

import pytest

from app.settings import keys
from tests.support.factories import audit_rows, bearer_of, make_user
from tests.support.races import run_concurrently

pytestmark = pytest.mark.both_databases

CONFIG = "/admin/config"


def test_one_way_to_sign_in_stays_when_both_are_switched_off_at_once(app, rt):
    clients = [bearer_of(rt, app, make_user(rt, role="admin")) for _ in range(2)]
    switches = ("auth_password_login_enabled", "auth_passkey_login_enabled")
    answers = run_concurrently(
        [
            lambda client=client, key=key: client.put(
                f"{CONFIG}/{key}?force=true", {"value": False}
            )
            for client, key in zip(clients, switches, strict=True)
        ]
    )
    assert sorted(answer.status for answer in answers) == [200, 400]
    assert sum(rt.settings.get(keys.ALL[key]) for key in switches) == 1


def test_the_same_change_by_several_is_written_once(app, rt):
    clients = [bearer_of(rt, app, make_user(rt, role="admin")) for _ in range(4)]
    body = {"values": {"branding_title": "Drive", "branding_description": "x"}}
    answers = run_concurrently([lambda c=client: c.patch(CONFIG, body) for client in clients])
    assert [answer.status for answer in answers] == [200] * 4
    assert sorted(len(answer.data["changed"]) for answer in answers) == [0, 0, 0, 2]
    assert len(audit_rows(rt, "config_update")) == 2
