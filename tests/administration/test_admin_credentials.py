"""/admin/users/{id}: address, password, sessions, credentials, and what is told of them."""

import json

import pytest

from app.external_auth.models import Identity
from app.passkeys.models import Passkey
from app.store import redis as redis_client
from app.web import runtime as web_runtime
from tests.contract.routes import routes
from tests.support import outbox
from tests.support.authenticator import enable_totp
from tests.support.external import add_provider, link
from tests.support.factories import (
    account_of,
    add_passkeys,
    audit_rows,
    bearer_of,
    change_user,
    configure,
    count,
    make_user,
)
from tests.support.images import plain, upload
from tests.support.mailbox import text_of

AGENT = {"User-Agent": "the console"}


@pytest.fixture
def boss(app, rt, admin):
    return bearer_of(rt, app, admin)


def path(user, *rest):
    return "/".join([f"/admin/users/{user.id}", *map(str, rest)])


def told(rt):
    return [row.recipient for row in outbox.rows(rt)]


def fail(api, user, times, address="192.0.2.1"):
    for _ in range(times):
        api.stranger().login(user, "wrong password", address=address).fails(
            401, "auth.credentials_failed"
        )


# --- the address -------------------------------------------------------------------------------


def test_an_address_is_replaced_and_the_old_one_is_told(boss, rt, api, user, mailbox):
    api.login(user).ok()
    api.post("/auth/email/change", {"new_email": "mine@example.com"}).ok()
    mailbox.read()
    changed = boss.put(path(user, "email"), {"email": "Right@Example.com"}).ok()
    assert (changed["email"], changed["email_verified"]) == ("right@example.com", False)
    assert changed["pending_email"] is None
    message = mailbox.only()
    assert message["To"] == user.email
    assert "right@example.com" not in text_of(message)
    api.me().ok()
    [row] = audit_rows(rt, "admin_set_user_email")
    assert json.loads(row.details)["previous_email"] == user.email


def test_a_verified_address_activates_who_waits_for_it(boss, rt, api, admin):
    waiting = make_user(rt, activated=False, verified=False)
    body = {"email": waiting.email, "verified": True}
    changed = boss.put(path(waiting, "email"), body).ok()
    assert (changed["is_activated"], changed["email_verified"]) == (True, True)
    api.login(waiting).ok()
    assert boss.put(path(waiting, "email"), body).ok()["updated_at"] == changed["updated_at"]
    assert len(audit_rows(rt, "admin_set_user_email")) == 1


def test_an_address_must_be_one_and_free(boss, rt, user):
    other = make_user(rt)
    boss.put(path(user, "email"), {"email": "nobody"}).fails(400, "bad_request")
    boss.put(path(user, "email"), {"email": other.email}).fails(400, "auth.email_exists")
    configure(rt, auth_local_email_allowlist=["elsewhere.example"])
    boss.put(path(user, "email"), {"email": "fine@example.com"}).ok()


def test_the_other_administrators_hear_of_an_address_and_a_password(boss, rt, admin):
    other, third = (make_user(rt, role="admin") for _ in range(2))
    boss.put(path(other, "email"), {"email": "taken@example.com"}).ok()
    boss.put(path(other, "password"), {"password": "a new one of his"}).ok()
    assert told(rt).count(third.email) == 2
    assert admin.email not in told(rt)


# --- the password ------------------------------------------------------------------------------


def test_a_password_is_set_and_ends_the_sessions(boss, rt, api, user):
    api.login(user).ok()
    assert boss.put(path(user, "password"), {"password": "a new one of hers"}).ok() == {}
    api.me().fails(401, "auth.token_invalid")
    assert api.login(user, "a new one of hers").ok()["status"] == "authenticated"
    assert told(rt) == [user.email]


@pytest.mark.parametrize("body", [{}, {"password": None}, {"password": " "}])
def test_a_generated_password_must_be_changed(boss, api, user, body):
    made = boss.put(path(user, "password"), body).ok()["generated_password"]
    assert api.login(user, made).ok()["status"] == "password_change_required"


def test_a_weak_password_is_refused(boss, api, user):
    boss.put(path(user, "password"), {"password": "short"}).fails(400, "bad_request")
    api.login(user).ok()


def test_the_ordinary_reset_link_is_mailed(boss, rt, api, user, mailbox, clock):
    boss.post(path(user, "password-reset-mail")).ok()
    token = mailbox.token(mailbox.only())
    assert boss.post(path(user, "password-reset-mail")).fails(429, "rate_limited").retry_after > 1
    body = {"token": token, "new_password": "a new one of hers"}
    api.post("/auth/password/reset/confirm", body).ok()
    api.login(user, "a new one of hers").ok()
    [row, _] = [row for row in audit_rows(rt) if "password_reset" in row.action]
    assert (row.user_id, row.entity_id) == (1, user.id) or row.user_id != user.id


@pytest.mark.parametrize(
    "columns", [{"status": "disabled"}, {"activated_at": None}, {"email_verified_at": None}]
)
def test_nothing_is_mailed_to_whom_it_may_not_reach(boss, rt, user, columns):
    change_user(rt, user, **columns)
    boss.post(path(user, "password-reset-mail")).fails(409, "conflict")
    assert told(rt) == []


# --- sessions ----------------------------------------------------------------------------------


def test_sessions_are_listed_and_ended_one_by_one(boss, rt, api, user):
    api.login(user).ok()
    other = api.stranger()
    other.login(user).ok()
    listed = boss.get(path(user, "sessions")).ok()
    assert [each["is_current"] for each in listed] == [False, False]
    gone = api.get("/auth/sessions").ok()
    mine = next(each["id"] for each in gone if each["is_current"])
    for _ in range(2):
        boss.delete(path(user, "sessions", mine)).ok()
    api.me().fails(401, "auth.token_invalid")
    other.me().ok()
    [row] = audit_rows(rt, "admin_revoke_user_session")
    assert row.entity_id == user.id


def test_a_session_of_another_account_is_not_found(boss, rt, api, user):
    api.login(user).ok()
    [session] = api.get("/auth/sessions").ok()
    boss.delete(path(make_user(rt), "sessions", session["id"])).fails(404, "not_found")
    boss.delete(path(user, "sessions", "nonsense")).fails(404, "not_found")
    api.me().ok()


def test_own_sessions_are_marked_and_may_be_ended(rt, api, admin):
    api.login(admin).ok()
    [session] = api.get(path(admin, "sessions")).ok()
    assert session["is_current"] is True
    assert api.post(path(admin, "sessions/revoke")).ok() == {"removed": 1}
    api.me().fails(401, "auth.token_invalid")
    assert len(audit_rows(rt, "admin_revoke_user_sessions")) == 1


# --- credentials -------------------------------------------------------------------------------


def test_credentials_tell_what_there_is_and_no_secret(boss, rt, api, user, clock):
    api.login(user).ok()
    enabled = enable_totp(api, clock)
    [passkey] = add_passkeys(rt, user, 1)
    linked = link(rt, user, add_provider(rt))
    fail(api, user, 2)
    fail(api, user, 3, "192.0.2.9")
    answer = boss.get(path(user, "credentials"))
    has = answer.ok()
    assert has["has_password"] is True
    assert has["second_factor"] == ["totp", "recovery_code"]
    assert [each["id"] for each in has["factors"]] == [enabled.factor_id]
    assert has["recovery_codes_remaining"] == 10
    assert [each["id"] for each in has["passkeys"]] == [passkey]
    assert [each["id"] for each in has["external_links"]] == [linked]
    assert has["live_sessions"] == 1
    assert has["last_sign_in_at"] is not None
    assert (has["failed_attempts"], has["locked_until"]) == (3, None)
    assert enabled.app.secret not in answer.text


def test_second_factors_are_removed_and_the_owner_is_told_once(boss, rt, api, user, clock, mailbox):
    api.login(user).ok()
    enable_totp(api, clock)
    mailbox.read()
    assert boss.get("/admin/users?has_second_factor=true").ok()["total"] == 1
    assert boss.get("/admin/users?has_second_factor=false").ok()["total"] == 2
    assert boss.delete(path(user, "mfa")).ok() == {"removed_factors": 1}
    api.me().fails(401, "auth.token_invalid")
    assert mailbox.only()["To"] == user.email
    assert boss.delete(path(user, "mfa")).ok() == {"removed_factors": 0}
    assert boss.get("/admin/users?has_second_factor=true").ok()["total"] == 0


def test_a_passkey_and_a_link_are_removed(boss, rt, user, mailbox):
    [passkey] = add_passkeys(rt, user, 1)
    linked = link(rt, user, add_provider(rt))
    boss.delete(path(user, "passkeys", passkey)).ok()
    boss.delete(path(user, "passkeys", passkey)).fails(404, "not_found")
    boss.delete(path(user, "external-links", linked)).ok()
    boss.delete(path(user, "external-links", linked)).fails(404, "not_found")
    assert [message["To"] for message in mailbox.read()] == [user.email] * 2
    for action in ("admin_remove_user_passkey", "admin_remove_user_external_link"):
        [row] = audit_rows(rt, action)
        assert row.entity_id == user.id


def test_the_last_way_in_goes_only_by_force(boss, rt, admin):
    with_passkey, with_link = (make_user(rt, password=None) for _ in range(2))
    [passkey] = add_passkeys(rt, with_passkey, 1)
    linked = link(rt, with_link, add_provider(rt))
    for each in (
        path(with_passkey, "passkeys", passkey),
        path(with_link, "external-links", linked),
    ):
        boss.delete(each).fails(409, "conflict")
        boss.delete(f"{each}?force=false").fails(409, "conflict")
        boss.delete(f"{each}?force=true").ok()
    assert count(rt, Passkey) == count(rt, Identity) == 0


def test_what_belongs_to_another_account_is_not_found(boss, rt, user):
    other = make_user(rt)
    [passkey] = add_passkeys(rt, other, 1)
    linked = link(rt, other, add_provider(rt))
    boss.delete(path(user, "passkeys", passkey)).fails(404, "not_found")
    boss.delete(path(user, "external-links", linked)).fails(404, "not_found")
    assert count(rt, Passkey) == count(rt, Identity) == 1


def test_an_account_is_unlocked_from_everywhere(boss, rt, api, user, clock):
    addresses = ["192.0.2.1", "2001:db8:1:2::1"]
    for address in addresses:
        fail(api, user, 10, address)
        api.stranger().login(user, address=address).fails(429, "rate_limited")
    has = boss.get(path(user, "credentials")).ok()
    assert has["failed_attempts"] == 10
    clock.advance(seconds=1)
    assert has["locked_until"] > clock.now().isoformat()
    other = make_user(rt)
    fail(api, other, 10)
    for _ in range(2):
        boss.post(path(user, "unlock")).ok()
    for address in addresses:
        api.stranger().login(user, address=address).ok()
    api.stranger().login(other, address="192.0.2.1").fails(429, "rate_limited")
    assert len(audit_rows(rt, "admin_unlock_user")) == 2


def test_the_attempts_are_forgotten_with_their_window(boss, api, user, clock):
    fail(api, user, 10)
    clock.advance(minutes=6)
    has = boss.get(path(user, "credentials")).ok()
    assert (has["failed_attempts"], has["locked_until"]) == (0, None)


def test_without_redis_nothing_is_known_of_attempts(make_app, own_valkey):
    app = make_app(redis=redis_client.connect(own_valkey.url))
    rt = web_runtime.of(app)
    boss = bearer_of(rt, app, make_user(rt, role="admin"))
    user = make_user(rt)
    own_valkey.kill()
    has = boss.get(path(user, "credentials")).ok()
    assert (has["failed_attempts"], has["locked_until"]) == (None, None)
    boss.post(path(user, "unlock")).fails(503, "internal_server_error")


# --- what happened, and the picture ------------------------------------------------------------


def test_the_history_has_what_an_account_did_and_what_was_done_to_it(boss, rt, api, user, admin):
    api.login(user).ok()
    boss.patch(path(user), {"storage_quota": 1}).ok()
    boss.patch(path(make_user(rt)), {"storage_quota": 2}).ok()
    page = boss.get(path(user, "audit-logs")).ok()
    assert (page["total"], page["limit"], page["offset"]) == (2, 50, 0)
    newest, oldest = page["items"]
    assert (newest["action"], newest["user"]["id"]) == ("admin_update_user", admin.id)
    assert (oldest["action"], oldest["user_id"]) == ("user_login", user.id)
    assert json.loads(newest["details"])["storage_quota"] == 1
    assert boss.get(f"{path(user, 'audit-logs')}?limit=1000").ok()["limit"] == 200
    second = boss.get(f"{path(user, 'audit-logs')}?limit=1&offset=1&sort_by=id").ok()
    assert [entry["id"] for entry in second["items"]] == [oldest["id"]]


@pytest.mark.usefixtures("unhurried")
def test_the_picture_of_any_account_is_shown(boss, rt, api, user):
    api.login(user).ok()
    boss.get(path(user, "avatar/512")).fails(404, "not_found")
    upload(api, plain()).ok()
    shown = boss.get(path(user)).ok()["profile"]["avatar"]["url_512"]
    answer = boss.get(shown)
    assert (answer.status, answer.headers["Content-Type"]) == (200, "image/webp")
    kept = {"If-None-Match": answer.headers["ETag"]}
    assert boss.get(shown, headers=kept).status == 304
    boss.get(path(user, "avatar/7")).fails(400, "bad_request")


# --- all of them -------------------------------------------------------------------------------


def writes(user, passkey=1, linked=1):
    return [
        ("PATCH", path(user), {"storage_quota": 5}),
        ("PUT", path(user, "email"), {"email": "new@example.com"}),
        ("PUT", path(user, "password"), {"password": "a planted password"}),
        ("POST", path(user, "password-reset-mail"), None),
        ("DELETE", path(user, "mfa"), None),
        ("POST", path(user, "sessions/revoke"), None),
        ("DELETE", path(user, "passkeys", passkey), None),
        ("DELETE", path(user, "external-links", linked), None),
        ("POST", path(user, "unlock"), None),
        ("DELETE", path(user), None),
    ]


def test_each_change_is_recorded_with_actor_address_and_agent_and_no_secret(boss, rt, user, admin):
    [passkey] = add_passkeys(rt, user, 1)
    linked = link(rt, user, add_provider(rt))
    before = len(audit_rows(rt))
    made = boss.post("/admin/users", {"username": "bob", "email": "b@example.com"}, headers=AGENT)
    generated = made.ok(201)["generated_password"]
    change_user(rt, user, email_verified_at=rt.clock.now())
    verified = writes(user, passkey, linked)
    verified[1], verified[3] = verified[3], verified[1]
    for method, where, body in verified:
        boss.call(method, where, body, headers=AGENT).ok()
    rows = audit_rows(rt)[before:]
    assert len(rows) == 1 + len(verified)
    for row in rows:
        assert (row.user_id, row.ip_address, row.user_agent) == (
            admin.id,
            "127.0.0.1",
            AGENT["User-Agent"],
        )
    text = " ".join(str(row) for row in rows)
    for secret in (generated, "a planted password", "argon2"):
        assert secret not in text


def test_the_own_account_is_changed_in_its_own_settings(boss, rt, admin):
    make_user(rt, role="admin")
    [passkey] = add_passkeys(rt, admin, 1)
    linked = link(rt, admin, add_provider(rt))
    before = account_of(rt, admin)
    allowed = {path(admin), path(admin, "password-reset-mail"), path(admin, "sessions/revoke")}
    for method, where, body in writes(admin, passkey, linked):
        if method == "DELETE" or where not in allowed:
            boss.call(method, where, body).fails(409, "conflict")
    for change in ({"role": "user"}, {"status": "disabled"}, {"must_change_password": True}):
        boss.patch(path(admin), change).fails(409, "conflict")
    many = {"ids": [admin.id], "action": "disable"}
    assert boss.post("/admin/users/bulk", many).ok()["refused"][0]["code"] == "conflict"
    assert account_of(rt, admin) == before
    assert count(rt, Passkey) == count(rt, Identity) == 1


def test_an_account_named_like_an_id_is_never_meant(boss, rt, app):
    make_user(rt, username="4711")
    mine = "/api/v1/admin/users/<row:id>"
    for route in routes(app):
        if route.rule.startswith(mine):
            body = {"email": "a@example.com"} if route.rule.endswith("email") else {}
            answer = boss.call(route.method, route.path(id="4711"), body)
            answer.fails(404, "not_found")
