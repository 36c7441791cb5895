"""Tokens made, used and removed at the same moment."""

from functools import partial

import pytest

from tests.support.factories import audit_rows
from tests.support.programs import PATH, add_token, names_of, program, row_of
from tests.support.races import run_concurrently

pytestmark = pytest.mark.both_databases
NEW = {"name": "It", "scopes": ["profile"], "expires_in_days": 1}


def test_of_many_with_one_name_one_is_made(rt, signed_in, user):
    answers = run_concurrently([partial(signed_in.twin().post, PATH, NEW) for _ in range(6)])
    assert sorted(answer.status for answer in answers) == [201] + [409] * 5
    assert names_of(rt, user) == ["It"]


def test_the_last_place_is_given_once(rt, signed_in, user):
    for _ in range(49):
        add_token(rt, user, "files")
    bodies = [{**NEW, "name": f"race {n}"} for n in range(6)]
    answers = run_concurrently([partial(signed_in.twin().post, PATH, body) for body in bodies])
    assert sorted(answer.status for answer in answers) == [201] + [409] * 5
    assert len(names_of(rt, user)) == 50


def test_whoever_removes_one_first_removes_it(rt, signed_in, user):
    _, token_id = add_token(rt, user, "profile")
    path = f"{PATH}/{token_id}"
    answers = run_concurrently([partial(signed_in.twin().delete, path) for _ in range(4)])
    assert sorted(answer.status for answer in answers) == [200, 404, 404, 404]
    assert len(audit_rows(rt, "user_token_delete")) == 1


def test_once_it_is_removed_no_change_by_it_follows(app, rt, signed_in, user):
    """A change that has come before is recorded before; none is half made."""
    text, token_id = add_token(rt, user, "profile")
    clients = [program(app, text) for _ in range(4)]
    changes = [
        partial(client.patch, "/auth/profile", {"display_name": f"n{number}"})
        for number, client in enumerate(clients)
    ]
    *answers, removal = run_concurrently(
        [*changes, partial(signed_in.twin().delete, f"{PATH}/{token_id}")]
    )
    removal.ok()
    assert {answer.status for answer in answers} <= {200, 401}
    rows = [row.action for row in audit_rows(rt) if row.action.startswith("user_")]
    done = rows[: rows.index("user_token_delete")].count("user_update_profile")
    assert done == rows.count("user_update_profile") == [a.status for a in answers].count(200)


def test_many_uses_at_once_are_noted_and_fail_nothing(app, rt, user):
    text, token_id = add_token(rt, user, "profile")
    clients = [program(app, text) for _ in range(6)]
    for answer in run_concurrently([client.me for client in clients]):
        answer.ok()
    assert row_of(rt, token_id).last_used_at == rt.clock.now()
