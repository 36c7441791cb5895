"""POST /admin/users/bulk, and the limit of role changes."""

import pytest

from app.core.config import Bucket
from app.users.models import User
from app.web import runtime as web_runtime
from tests.support.factories import account_of, audit_rows, bearer_of, count, make_user

BULK = "/admin/users/bulk"


@pytest.fixture
def boss(app, rt, admin):
    return bearer_of(rt, app, admin)


@pytest.mark.both_databases
def test_each_account_is_changed_or_refused_by_itself(boss, rt, admin):
    one, other = make_user(rt), make_user(rt, role="admin")
    ids = [one.id, one.id, 4711, other.id]
    assert boss.post(BULK, {"ids": ids, "action": "delete"}).ok()["done"] == [one.id]
    told = boss.post(BULK, {"ids": ids, "action": "delete"}).ok()
    assert told["done"] == []
    assert [(each["id"], each["code"]) for each in told["refused"]] == [
        (one.id, "not_found"),
        (4711, "not_found"),
        (other.id, "conflict"),
    ]
    assert all(each["msg"] for each in told["refused"])
    assert len(audit_rows(rt, "admin_force_delete_user")) == 1


@pytest.mark.parametrize(
    ("action", "columns"),
    [
        ("disable", {"status": "disabled"}),
        ("enable", {"status": "active"}),
        ("require_password_change", {"must_change_password": True}),
        ("revoke_sessions", {"session_version": 2}),
        ("assign_group", {"policy_group_id": 1}),
    ],
)
def test_every_action_does_what_it_says(boss, rt, action, columns):
    status = "disabled" if action == "enable" else "active"
    users = [make_user(rt, status=status) for _ in range(3)]
    body = {"ids": [user.id for user in users], "action": action}
    if action == "assign_group":
        body["policy_group_id"] = 1
    assert boss.post(BULK, body).ok() == {"done": body["ids"], "refused": []}
    for user in users:
        account = account_of(rt, user)
        assert {name: getattr(account, name) for name in columns} == columns


def test_own_sessions_end_after_those_of_all_others(boss, rt, admin):
    other = make_user(rt)
    body = {"ids": [admin.id, other.id], "action": "revoke_sessions"}
    assert boss.post(BULK, body).ok()["done"] == [other.id, admin.id]
    boss.me().fails(401, "auth.token_invalid")


@pytest.mark.parametrize(
    "body",
    [
        {"ids": [], "action": "disable"},
        {"ids": list(range(1, 202)), "action": "disable"},
        {"ids": ["1"], "action": "disable"},
        {"ids": [0], "action": "disable"},
        {"ids": [1]},
        {"ids": [1], "action": "promote"},
        {"ids": [1], "action": "assign_group"},
        {"ids": [1], "action": "disable", "policy_group_id": 1},
        {"ids": [1], "action": "assign_group", "policy_group_id": None},
    ],
)
def test_what_makes_no_sense_is_refused_as_a_whole(boss, body):
    boss.post(BULK, body).fails(400, "bad_request")


def test_an_unknown_group_is_not_found(boss, user):
    body = {"ids": [user.id], "action": "assign_group", "policy_group_id": 4711}
    boss.post(BULK, body).fails(404, "not_found")


def test_twenty_roles_an_hour_and_administrator(boss, rt, clock):
    user = make_user(rt)
    path = f"/admin/users/{user.id}"
    roles = ["admin", "user"] * 10
    for role in roles:
        boss.patch(path, {"role": role}).ok()
    boss.patch(path, {"role": "admin"}).fails(429, "rate_limited")
    boss.patch(path, {"role": "user", "storage_quota": 3}).ok()  # it has that role
    assert count(rt, User, User.role == "admin") == 1
    made = {"username": "grace", "email": "grace@example.com", "role": "admin"}
    boss.post("/admin/users", made).fails(429, "rate_limited")
    clock.advance(minutes=3)
    boss.patch(path, {"role": "admin"}).ok()


def test_without_rate_limits_roles_are_not_counted(make_app):
    app = make_app(rate_limits=False, session_bucket=Bucket(1, 1))
    rt = web_runtime.of(app)
    boss = bearer_of(rt, app, make_user(rt, role="admin"))
    path = f"/admin/users/{make_user(rt).id}"
    for role in ["admin", "user"] * 11:
        boss.patch(path, {"role": role}).ok()


@pytest.mark.both_databases
def test_un_verifying_ends_the_sessions_and_keeps_the_activation(boss, rt, api, user):
    api.login(user).ok()
    shown = boss.patch(f"/admin/users/{user.id}", {"email_verified": False}).ok()
    assert (shown["email_verified"], shown["is_activated"]) == (False, True)
    api.me().fails(401, "auth.token_invalid")
    api.login(user).ok()
