"""What ends access tokens, and what they outlive."""

import json

import pytest

from app.access_tokens.models import AccessToken
from app.contact_verification.models import LinkPurpose
from app.sessions import service as sessions
from app.users.models import User
from tests.support.authenticator import enable_totp
from tests.support.commands import CommandLine
from tests.support.factories import audit_rows, bearer_of, change_user, issue_token, make_user
from tests.support.programs import add_token, names_of, program, program_of

pytestmark = pytest.mark.both_databases
NEW_PASSWORD = "another good password"


@pytest.fixture
def client(app, rt, user):
    """A program of the user."""
    return program_of(app, user, "profile", name="It")


@pytest.fixture
def boss(browser, admin):
    browser.login(admin).ok()
    return browser


@pytest.fixture
def line(app):
    return CommandLine(app)


def gone(rt, user, client):
    client.me().fails(401, "auth.token_invalid")
    assert names_of(rt, user) == []


def test_the_owner_locks_the_account(rt, user, client, signed_in):
    signed_in.post("/auth/lock").ok()
    gone(rt, user, client)


def test_a_reset_is_completed(rt, user, client, api):
    token = issue_token(rt, user, LinkPurpose.PASSWORD_RESET)
    client.me().ok()
    body = {"token": token, "new_password": NEW_PASSWORD}
    api.post("/auth/password/reset/confirm", body).ok()
    gone(rt, user, client)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "password", {"password": NEW_PASSWORD}),
        ("POST", "sessions/revoke", None),
        ("DELETE", "mfa", None),
    ],
)
def test_an_administrator(rt, user, client, boss, method, path, body):
    boss.call(method, f"/admin/users/{user.id}/{path}", body).ok()
    gone(rt, user, client)


def test_an_administrator_for_many(rt, user, client, boss):
    boss.post("/admin/users/bulk", {"ids": [user.id], "action": "revoke_sessions"}).ok()
    gone(rt, user, client)


@pytest.mark.parametrize(
    "words",
    [("revoke-sessions",), ("reset-mfa",), ("set-password", "--generate")],
)
def test_a_command(rt, user, client, line, words):
    line.json("users", words[0], user.username, *words[1:])
    gone(rt, user, client)


def test_deletion(rt, user, client, boss):
    boss.delete(f"/admin/users/{user.id}").ok()
    client.me().fails(401, "auth.token_invalid")


def test_the_replay_of_a_refresh_token(rt, user, client, signed_in):
    thief = signed_in.twin()
    signed_in.refresh().ok()
    thief.refresh().fails(401, "auth.refresh_token_reuse_detected")
    gone(rt, user, client)


# --- what they outlive ---------------------------------------------------------------------------


def test_what_the_owner_does_without_fear(rt, user, client, signed_in, clock):
    change = {"current_password": user.password, "new_password": NEW_PASSWORD}
    signed_in.put("/auth/password", change).ok()
    enable_totp(signed_in, clock)
    other = bearer_of(rt, signed_in.app, user)
    [theirs] = [s["id"] for s in signed_in.get("/auth/sessions").ok() if not s["is_current"]]
    signed_in.delete(f"/auth/sessions/{theirs}").ok()
    other.me().fails(401, "auth.token_invalid")
    bearer_of(rt, signed_in.app, user)
    assert signed_in.delete("/auth/sessions/others").ok()["removed"] == 1
    signed_in.post("/auth/logout").ok()
    client.me().ok()


def test_a_change_of_address(user, client, boss):
    boss.put(f"/admin/users/{user.id}/email", {"email": "new@example.com"}).ok()
    client.me().ok()


def test_a_disabled_account_rests(rt, user, client, boss):
    path = f"/admin/users/{user.id}"
    boss.patch(path, {"status": "disabled"}).ok()
    client.me().fails(403, "auth.account_disabled")
    boss.patch(path, {"status": "active"}).ok()
    client.me().ok()


def test_a_forced_change_of_password(rt, user, client, boss, api):
    boss.patch(f"/admin/users/{user.id}", {"must_change_password": True}).ok()
    client.me().fails(403, "auth.password_change_required")
    api.login(user).ok()
    change = {"current_password": user.password, "new_password": NEW_PASSWORD}
    api.put("/auth/password", change).ok()
    client.me().ok()


def test_demotion_lets_a_scope_sleep(rt, app, boss):
    other = make_user(rt, role="admin")
    client = program_of(app, other, "admin:read")
    for role in ("user", "admin"):
        boss.patch(f"/admin/users/{other.id}", {"role": role}).ok()
        answer = client.get("/admin/users")
        assert answer.code == ("auth.admin_required" if role == "user" else "success")
        assert client.me().ok()["token"]["scopes"] == ["admin:read"]


# --- what waits meanwhile ------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["removed", "expired", "disabled", "forced"])
def test_a_change_that_waited_changes_nothing(app, rt, user, monkeypatch, clock, end):
    """The token was still good when the request came."""
    text, token_id = add_token(rt, user, "profile")
    lock = sessions.users_queries.lock
    codes = {
        "removed": (401, "auth.token_invalid"),
        "expired": (401, "auth.token_invalid"),
        "disabled": (403, "auth.account_disabled"),
        "forced": (403, "auth.password_change_required"),
    }

    def overtaken(session, user_id, **options):
        monkeypatch.setattr(sessions.users_queries, "lock", lock)
        lock(session, user_id, **options)
        if end == "removed":
            session.query(AccessToken).filter_by(id=token_id).delete()
        elif end == "expired":
            session.query(AccessToken).filter_by(id=token_id).update({"expires_at": clock.now()})
        else:
            column = {"status": "disabled"} if end == "disabled" else {"must_change_password": True}
            session.query(User).filter_by(id=user_id).update(column)

    monkeypatch.setattr(sessions.users_queries, "lock", overtaken)
    answer = program(app, text).patch("/auth/profile", {"display_name": "Eve"})
    answer.fails(*codes[end])
    assert audit_rows(rt, "user_update_profile") == []


def test_an_administrators_program_as_well(app, rt, user, admin, monkeypatch):
    text, token_id = add_token(rt, admin, "admin")
    require = sessions.access_tokens.require_still_open

    def overtaken(rt, session, program):
        session.query(AccessToken).filter_by(id=token_id).delete()
        return require(rt, session, program)

    monkeypatch.setattr(sessions.access_tokens, "require_still_open", overtaken)
    path = f"/admin/users/{user.id}"
    program(app, text).patch(path, {"storage_quota": 5}).fails(401, "auth.token_invalid")
    assert audit_rows(rt, "admin_update_user") == []


def test_what_ended_them_is_recorded_once(rt, user, client, boss):
    boss.post(f"/admin/users/{user.id}/sessions/revoke").ok()
    [row] = audit_rows(rt, "admin_revoke_user_sessions")
    assert json.loads(row.details) == {"removed": 0}
    assert audit_rows(rt, "admin_remove_user_token") == []


def test_a_change_of_role_changes_no_token(rt, user, client):
    change_user(rt, user, role="admin")
    client.me().ok()
