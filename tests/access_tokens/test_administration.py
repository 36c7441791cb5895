"""What administrators do with tokens, and what their programs may not."""

import json

import pytest

from tests.support.factories import audit_rows, bearer_of, change_user, column_of, make_user
from tests.support.mailbox import text_of
from tests.support.programs import add_token, names_of, program_of

EMPTY = {"name": "It", "scopes": ["files"], "expires_in_days": 1}


@pytest.fixture
def boss(browser, admin):
    browser.login(admin).ok()
    return browser


@pytest.fixture
def script(app, rt, admin):
    """A program with all that an administrator can give it."""
    return program_of(app, admin, "admin", "profile")


# --- tokens of others ----------------------------------------------------------------------------


@pytest.mark.both_databases
def test_tokens_are_listed_and_removed(app, rt, boss, user, mailbox, admin):
    for name in ("one", "two", "three"):
        add_token(rt, user, "files", name=name)
    path = f"/admin/users/{user.id}/tokens"
    listed = boss.get(path).ok()
    assert [token["name"] for token in listed] == ["three", "two", "one"]
    assert not {"token", "digest"} & listed[0].keys()
    boss.delete(f"{path}/{listed[0]['id']}").ok()
    [mail] = mailbox.read()
    assert mail["To"] == user.email
    assert "An administrator removed the access token “three”." in " ".join(text_of(mail).split())
    assert boss.delete(path).ok() == {"removed": 2}
    assert "“two”, “one”" in " ".join(text_of(mailbox.read()[-1]).split())
    assert boss.delete(path).ok() == {"removed": 0}
    assert names_of(rt, user) == []
    rows = audit_rows(rt, "admin_remove_user_token")
    assert [(row.entity_type, row.entity_name) for row in rows] == [
        ("access_token", "three"),
        ("access_token", "two"),
        ("access_token", "one"),
    ]
    assert rows[0].entity_id == listed[0]["id"]
    assert (rows[0].user_id, json.loads(rows[0].details)["user_id"]) == (admin.id, user.id)


def test_the_owner_sees_what_an_administrator_removed(app, rt, boss, user):
    add_token(rt, user, "files", name="mine")
    add_token(rt, make_user(rt), "files", name="another's")
    boss.delete(f"/admin/users/{user.id}/tokens").ok()
    shown = bearer_of(rt, app, user).get("/auth/activity").ok()["items"]
    [entry] = [entry for entry in shown if entry["action"] == "admin_remove_user_token"]
    assert (entry["by"], entry["entity_name"]) == ("administrator", None)
    assert entry["details"] == {"name": "mine", "scopes": ["files"]}
    about = boss.get(f"/admin/users/{user.id}/audit-logs").ok()["items"]
    assert "admin_remove_user_token" in [entry["action"] for entry in about]


def test_ones_own_are_removed_in_ones_own_settings(rt, boss, admin):
    _, token_id = add_token(rt, admin, "files", name="It")
    path = f"/admin/users/{admin.id}/tokens"
    assert len(boss.get(path).ok()) == 1
    boss.delete(path).fails(409, "conflict")
    boss.delete(f"{path}/{token_id}").fails(409, "conflict")
    assert names_of(rt, admin) == ["It"]


def test_what_is_not_there(rt, boss, user, admin):
    _, theirs = add_token(rt, make_user(rt), "files")
    for token_id in (theirs, 4711):
        boss.delete(f"/admin/users/{user.id}/tokens/{token_id}").fails(404, "not_found")
    boss.get("/admin/users/4711/tokens").fails(404, "not_found")
    boss.delete("/admin/users/4711/tokens").fails(404, "not_found")


def test_no_route_makes_one_for_another(boss, user):
    answer = boss.post(f"/admin/users/{user.id}/tokens", EMPTY, described=False)
    assert answer.status in {404, 405}


# --- what a program of an administrator may not --------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PATCH", "", {"storage_quota": 5}),
        ("PATCH", "", {"status": "disabled"}),
        ("POST", "/sessions/revoke", None),
        ("POST", "/unlock", None),
        ("POST", "/password-reset-mail", None),
    ],
)
def test_it_changes_no_administrators_account(app, rt, script, admin, user, method, path, body):
    for other in (admin, make_user(rt, role="admin")):
        answer = script.call(method, f"/admin/users/{other.id}{path}", body)
        assert answer.fails(403, "forbidden").json["msg"] == "A token cannot do this."
    script.call(method, f"/admin/users/{user.id}{path}", body).ok()


def test_it_moves_no_administrator_to_other_storage(rt, line, script, admin, user):
    group = "storage", "create-group", "--policy", "Local storage"
    source, target = (line.json(*group, name)["id"] for name in ("Source", "Target"))
    path, body = f"/admin/policy-groups/{source}/migrate-assignments", {"target_group_id": target}
    for account in (admin, user):
        change_user(rt, account, policy_group_id=source)
    script.post(path, body).fails(403, "forbidden")
    change_user(rt, admin, policy_group_id=target)
    assert script.post(path, body).ok()["affected_users"] == 1


def test_it_ends_no_administrators_session(app, rt, script, user):
    other = make_user(rt, role="admin")
    for owner, status in ((other, 403), (user, 200)):
        client = bearer_of(rt, app, owner)
        [one] = client.get("/auth/sessions").ok()
        answer = script.delete(f"/admin/users/{owner.id}/sessions/{one['id']}")
        assert answer.status == status
        assert client.me().status == (200 if status == 403 else 401)


def test_in_bulk_administrators_are_refused_and_keep_none_back(rt, script, user):
    other = make_user(rt, role="admin")
    for action in ("disable", "enable", "revoke_sessions", "require_password_change"):
        body = {"ids": [other.id, user.id], "action": action}
        outcome = script.post("/admin/users/bulk", body).ok()
        assert outcome["done"] == [user.id]
        assert [(one["id"], one["code"]) for one in outcome["refused"]] == [(other.id, "forbidden")]
    assert column_of(rt, other, "status") == "active"


def test_it_deletes_nobody_and_makes_no_administrator(rt, script, user):
    new = {"username": "eve", "email": "eve@example.com"}
    script.post("/admin/users/bulk", {"ids": [user.id], "action": "delete"}).fails(403, "forbidden")
    script.post("/admin/users", {**new, "role": "admin"}).fails(403, "forbidden")
    assert script.post("/admin/users", new).ok(201)["user"]["role"] == "user"


@pytest.mark.parametrize(
    "body",
    [{"role": "admin"}, {"role": "user"}, {"email_verified": True}, {"email_verified": False}],
)
def test_it_changes_neither_roles_nor_verification(rt, script, user, body):
    script.patch(f"/admin/users/{user.id}", {**body, "storage_quota": 7}).fails(403, "forbidden")
    assert column_of(rt, user, "storage_quota") != 7


def test_it_has_nothing_to_do_with_tokens_but_lists_them(rt, script, user, admin):
    _, token_id = add_token(rt, user, "files", name="It")
    path = f"/admin/users/{user.id}/tokens"
    assert len(script.get(path).ok()) == 1
    script.delete(path).fails(403, "forbidden")
    script.delete(f"{path}/{token_id}").fails(403, "forbidden")
    script.get("/auth/tokens").fails(403, "forbidden")
    script.post("/auth/tokens", EMPTY).fails(403, "forbidden")
    script.patch(f"/auth/tokens/{token_id}", {"name": "x"}).fails(403, "forbidden")
    script.delete("/auth/tokens").fails(403, "forbidden")
    assert names_of(rt, user) == ["It"]


def test_settings_are_read_and_not_written(script):
    script.get("/admin/config").ok()
    script.get("/admin/config/branding_title").ok()
    script.put("/admin/config/branding_title", {"value": "x"}).fails(403, "forbidden")
    script.post("/admin/config/validate", {"values": {}}).fails(403, "forbidden")
    script.post("/admin/keys/rotate").fails(403, "forbidden")


def test_the_two_exports_need_no_confirmation_and_are_recorded_with_the_token(app, rt, admin):
    _, token_id = add_token(rt, admin, "admin:read", name="auditor")
    reader = program_of(app, admin, "admin:read", name="other")
    team = bearer_of(rt, app, admin).post("/admin/teams", team_of(admin)).ok(201)["id"]
    for path in ("/admin/audit-logs/export", f"/admin/teams/{team}/audit-logs/export"):
        assert reader.get(path).status == 200
    rows = audit_rows(rt, "admin_export_audit_log")
    assert [json.loads(row.details)["token_id"] for row in rows] == [token_id + 1] * 2


def team_of(admin):
    return {"name": "Team", "admin_user_id": admin.id}
