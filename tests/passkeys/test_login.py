"""Signing in with a passkey."""

import json
import re
import uuid

import pytest

from app.passkeys import ceremony, queries
from app.store import redis as redis_client
from tests.support.api import ApiClient
from tests.support.authenticator import enable_totp
from tests.support.factories import (
    audit_rows,
    change_user,
    column_of,
    configure,
    make_user,
)
from tests.support.passkeys import (
    Authenticator,
    b64,
    finish_login,
    log_in,
    register,
    start_login,
    start_registration,
    unb64,
)

pytestmark = pytest.mark.usefixtures("site")

TOKEN_INVALID = 401, "auth.token_invalid"
REFUSED = 401, "auth.credentials_failed"
MALFORMED = 400, "bad_request"
DISABLED = 403, "auth.passkey_login_disabled"


# --- start -------------------------------------------------------------------------------------


def test_a_login_starts_with_what_a_page_passes_on(api):
    data = start_login(api)
    assert set(data) == {"flow_id", "public_key"}
    assert data["flow_id"] == str(uuid.UUID(data["flow_id"], version=4))
    challenge = data["public_key"]["publicKey"]["challenge"]
    assert data["public_key"] == {
        "publicKey": {
            "challenge": challenge,
            "timeout": 300000,
            "rpId": "localhost",
            "allowCredentials": [],
            "userVerification": "required",
            "extensions": {"uvm": True},
        }
    }
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", challenge)


def test_conditional_mediation_is_named_only_where_it_is_asked_for(api):
    assert start_login(api, conditional=True)["public_key"]["mediation"] == "conditional"
    for conditional in (False, None):
        assert "mediation" not in start_login(api, conditional=conditional)["public_key"]


def test_a_start_of_another_shape_is_malformed(api):
    for body in ([], "x", {"conditional": "true"}, {"conditional": 1}, {"identifier": 7}):
        answer = api.post("/auth/passkeys/login/start", body)
        assert (answer.status, answer.code) == MALFORMED, body


def test_an_unknown_name_cannot_be_told_from_a_known_one(api, user, passkey):
    def shape(identifier):
        data = start_login(api, identifier=identifier)
        challenge = data["public_key"]["publicKey"].pop("challenge")
        return len(challenge), len(data.pop("flow_id")), data

    known, unknown = shape(user.username), shape("nobody")
    assert known == unknown == shape(user.email) == shape("no@body.example") == shape(None)


def test_a_start_reads_no_account(rt, api, user, passkey):
    """So its time cannot tell them apart either."""
    start_login(api)
    statements = []
    rt.database.on_statement(lambda: statements.append(1))
    for identifier in (user.username, user.email, "nobody"):
        start_login(api, identifier=identifier)
    assert statements == []


def test_a_long_name_takes_no_more_room_in_redis_than_a_short_one(rt, api):
    """Strangers may start as many as their limit allows, and Redis must not be full of names."""
    sizes = []
    for identifier in ("ada", "\N{GRINNING FACE}" * 1024):
        start_login(api, identifier=identifier)
        [key] = rt.redis.client.keys("gatehouse:passkey:*")
        sizes.append(rt.redis.client.strlen(key))
        rt.redis.client.delete(key)
    assert sizes[0] == sizes[1] < 300


# --- finish ------------------------------------------------------------------------------------


def test_a_passkey_signs_in(stranger, device, passkey, user):
    answer = log_in(stranger, device)
    assert answer.ok() == {"status": "authenticated", "expires_in": 900}
    assert set(answer.set_cookies) == {
        "service_access",
        "service_refresh",
        "service_csrf",
        "service_device",
    }
    assert stranger.me().ok()["id"] == user.id
    stranger.refresh().ok()


def test_no_second_factor_is_asked_for(signed_in, device, clock):
    register(signed_in, device).ok()
    enable_totp(signed_in, clock)
    assert log_in(signed_in.stranger(), device).ok()["status"] == "authenticated"


def test_a_forced_password_change_is_told_and_limits_the_session(
    rt, stranger, user, device, passkey
):
    change_user(rt, user, must_change_password=True)
    data = log_in(stranger, device).ok()
    assert data == {"status": "password_change_required", "expires_in": 900}
    stranger.get("/auth/passkeys").fails(403, "auth.password_change_required")
    [entry] = audit_rows(rt, "user_passkey_login")
    assert json.loads(entry.details)["password_change_required"] is True
    configure(rt, auth_password_login_enabled=False)
    assert log_in(stranger, device).ok()["status"] == "authenticated"


def test_it_works_without_a_password_and_while_passwords_are_off(
    rt, stranger, user, device, passkey
):
    change_user(rt, user, password_hash=None)
    configure(rt, auth_password_login_enabled=False)
    log_in(stranger, device).ok()


@pytest.mark.both_databases
def test_using_it_is_noted_and_recorded(rt, signed_in, user, device, passkey, clock):
    clock.advance(seconds=5)
    stranger = signed_in.stranger()
    started = start_login(stranger)
    body = {"flow_id": started["flow_id"], "credential": device.get(started["public_key"], count=3)}
    headers = {"User-Agent": "Firefox"}
    stranger.post("/auth/passkeys/login/finish", body, headers=headers).ok()
    [shown] = signed_in.get("/auth/passkeys").ok()
    moment = "2026-03-02T09:30:05Z"
    assert shown == passkey | {"sign_count": 3, "updated_at": moment, "last_used_at": moment}
    [entry] = audit_rows(rt, "user_passkey_login")
    told = entry.user_id, entry.entity_type, entry.entity_id, entry.entity_name
    assert told == (user.id, "passkey", passkey["id"], "Passkey")
    assert (entry.ip_address, entry.user_agent) == ("127.0.0.1", "Firefox")
    assert json.loads(entry.details) == {
        "passkey_id": passkey["id"],
        "name": "Passkey",
        "password_change_required": False,
    }
    [session] = [s for s in stranger.get("/auth/sessions").ok() if s["is_current"]]
    assert (session["ip_address"], session["user_agent"]) == ("127.0.0.1", "Firefox")


def test_it_works_while_nothing_is_recorded(rt, signed_in, device, passkey):
    configure(rt, audit_log_enabled=False)
    log_in(signed_in.stranger(), device, count=4).ok()
    assert signed_in.get("/auth/passkeys").ok()[0]["sign_count"] == 4


def test_each_of_several_passkeys_signs_in(signed_in, device, passkey, user):
    second = Authenticator()
    register(signed_in, second).ok()
    for each in (device, second, device):
        stranger = signed_in.stranger()
        log_in(stranger, each).ok()
        assert stranger.me().ok()["id"] == user.id


# --- the name that was given at the start ------------------------------------------------------


def test_a_name_may_be_spelled_in_any_case(stranger, user, device, passkey):
    names = [user.username, f" {user.username.upper()} ", user.email, user.email.upper()]
    for typed in (*names, "", "  ", None):
        started = start_login(stranger, identifier=typed)
        proof = device.get(started["public_key"])
        assert finish_login(stranger, started["flow_id"], proof).status == 200, typed


def test_a_passkey_of_somebody_else_is_refused(rt, stranger, user, device, passkey):
    other = make_user(rt)
    for typed in (other.username, other.email, "nobody", "@", f"{user.username}@"):
        started = start_login(stranger, identifier=typed)
        answer = finish_login(stranger, started["flow_id"], device.get(started["public_key"]))
        assert (answer.status, answer.code) == REFUSED, typed


# --- refusals ----------------------------------------------------------------------------------


def test_the_handle_must_be_the_accounts(stranger, device, passkey):
    for handle in (..., None, "", b64(bytes(16)), b64(bytes(15)), b64(bytes(64))):
        answer = log_in(stranger, device, response={"userHandle": handle})
        assert (answer.status, answer.code) == REFUSED, handle


def test_the_handle_of_another_account_is_refused(rt, app, stranger, device, passkey):
    client = ApiClient(app)
    client.login(make_user(rt)).ok()
    theirs = Authenticator()
    register(client, theirs).ok()
    changes = {"userHandle": theirs.passkeys[0].user_handle}
    log_in(stranger, device, response=changes).fails(*REFUSED)


def test_only_of_a_passkey_that_nobody_has_is_said_that_it_is_unknown(
    rt, signed_in, stranger, user, device, passkey
):
    """Pages have the browser hide it, which must not happen to one that works again later."""
    names = passkey["credential_id"]
    known = {
        "another origin": {"origin": "https://elsewhere.example"},
        "another challenge": {"challenge": b64(bytes(32))},
        "another site": {"rp_id": "elsewhere.example"},
        "no user verification": {"flags": 1},
        "a wrong signature": {"response": {"signature": b64(bytes(64))}},
        "the handle of nobody": {"response": {"userHandle": b64(bytes(16))}},
        "its id in padded spelling": {"credential": {"id": f"{names}=", "rawId": f"{names}="}},
    }
    log_in(stranger, device, count=9).ok()
    known["a counter that fell back"] = {"count": 4}
    for name, changes in known.items():
        answer = log_in(stranger, device, **changes)
        assert (answer.status, answer.data) in ((400, None), (401, None)), (name, answer)
    change_user(rt, user, status="disabled")
    assert log_in(stranger, device).fails(403, "auth.account_disabled").data is None
    change_user(rt, user, status="active")
    unknown = b64(bytes(32))
    answer = log_in(stranger, device, credential={"id": unknown, "rawId": unknown})
    assert answer.fails(*REFUSED).data == {"credential_unknown": True}
    signed_in.delete(f"/auth/passkeys/{passkey['id']}").ok()
    assert log_in(stranger, device).fails(*REFUSED).data == {"credential_unknown": True}


@pytest.mark.parametrize(
    ("columns", "refusal"),
    [
        ({"status": "disabled"}, (403, "auth.account_disabled")),
        ({"activated_at": None}, (403, "auth.pending_activation")),
    ],
)
def test_an_account_that_may_not_sign_in_is_told_so(
    rt, stranger, user, device, passkey, columns, refusal
):
    change_user(rt, user, **columns)
    assert log_in(stranger, device).fails(*refusal).set_cookies == {}
    assert audit_rows(rt, "user_passkey_login") == []


def test_an_unverified_address_keeps_nobody_out(rt, stranger, user, device, passkey):
    """What counts is the activation."""
    change_user(rt, user, email_verified_at=None)
    log_in(stranger, device).ok()


def test_the_checks_come_in_their_order(rt, signed_in, user, device, passkey):
    """Each request has every fault of those after it, too."""
    stranger = signed_in.stranger()
    change_user(rt, user, status="disabled", activated_at=None)

    def flawed(named="nobody", response=None, **changes):
        started = start_login(stranger, identifier=named)
        proof = device.get(started["public_key"], flags=0, response=response or {}, **changes)
        return finish_login(stranger, started["flow_id"], proof)

    configure(rt, auth_passkey_login_enabled=False, public_site_url=[])
    finish_login(stranger, "unknown", {}).fails(*DISABLED)
    stranger.post("/auth/passkeys/login/start", {}).fails(*DISABLED)
    configure(rt, auth_passkey_login_enabled=True)
    finish_login(stranger, "unknown", {}).fails(400, "config.public_site_url_required")
    stranger.post("/auth/passkeys/login/start", {}).fails(400, "config.public_site_url_required")
    configure(rt, public_site_url=["http://localhost"])
    finish_login(stranger, "unknown", {}).fails(*TOKEN_INVALID)
    flawed(response={"userHandle": None, "signature": 1}).fails(*MALFORMED)
    flawed(response={"userHandle": None}).fails(*REFUSED)
    flawed().fails(*REFUSED)
    flawed(named=user.username).fails(403, "auth.account_disabled")
    change_user(rt, user, status="active")
    flawed(named=user.username).fails(403, "auth.pending_activation")
    change_user(rt, user, activated_at=rt.clock.now())
    flawed(named=user.username).fails(*REFUSED)
    log_in(stranger, device).ok()


def test_the_switch_leaves_a_flow_open_and_management_too(rt, signed_in, device, passkey):
    stranger = signed_in.stranger()
    started = start_login(stranger)
    proof = device.get(started["public_key"])
    configure(rt, auth_passkey_login_enabled=False)
    finish_login(stranger, started["flow_id"], proof).fails(*DISABLED)
    assert signed_in.get("/auth/passkeys").ok() == [passkey]
    second = register(signed_in, Authenticator()).ok()
    signed_in.patch(f"/auth/passkeys/{second['id']}", {"name": "Second"}).ok()
    signed_in.delete(f"/auth/passkeys/{second['id']}").ok()
    configure(rt, auth_passkey_login_enabled=True)
    finish_login(stranger, started["flow_id"], proof).ok()


# --- flows -------------------------------------------------------------------------------------


def test_a_flow_is_good_for_one_answer(stranger, device, passkey):
    started = start_login(stranger)
    proof = device.get(started["public_key"])
    finish_login(stranger, started["flow_id"], proof).ok()
    finish_login(stranger, started["flow_id"], proof).fails(*TOKEN_INVALID)
    again = device.get(started["public_key"])
    finish_login(stranger, started["flow_id"], again).fails(*TOKEN_INVALID)


def test_an_answer_is_good_for_one_flow(stranger, device, passkey):
    proof = device.get(start_login(stranger)["public_key"])
    finish_login(stranger, start_login(stranger)["flow_id"], proof).fails(*REFUSED)


@pytest.mark.parametrize("wrong", [{"credential": {"type": "x"}}, {"flags": 0}])
def test_a_wrong_answer_uses_it_up_too(stranger, device, passkey, wrong):
    started = start_login(stranger)
    proof = device.get(started["public_key"], **wrong)
    assert finish_login(stranger, started["flow_id"], proof).status in {400, 401}
    proof = device.get(started["public_key"])
    finish_login(stranger, started["flow_id"], proof).fails(*TOKEN_INVALID)


def test_a_flow_lives_five_minutes(stranger, device, passkey, clock):
    in_time, late = start_login(stranger), start_login(stranger)
    clock.advance(seconds=299.999)
    finish_login(stranger, in_time["flow_id"], device.get(in_time["public_key"])).ok()
    clock.advance(seconds=0.001)
    proof = device.get(late["public_key"])
    finish_login(stranger, late["flow_id"], proof).fails(*TOKEN_INVALID)


def test_an_unknown_flow_is_refused_as_a_token(stranger):
    for flow_id in ("", "unknown", "\u00e9", str(uuid.UUID(int=7, version=4))):
        answer = finish_login(stranger, flow_id, {})
        assert (answer.status, answer.code) == TOKEN_INVALID, flow_id


def test_a_flow_of_a_registration_is_unknown_and_stays_open(signed_in):
    device = Authenticator()
    started = start_registration(signed_in)
    finish_login(signed_in.stranger(), started["flow_id"], {}).fails(*TOKEN_INVALID)
    body = {"flow_id": started["flow_id"], "credential": device.create(started["public_key"])}
    signed_in.post("/auth/passkeys/register/finish", body).ok()


def test_redis_shows_no_flow_that_could_be_answered(rt, api, user):
    started = start_login(api, identifier=user.username)
    [name] = rt.redis.client.scan_iter("gatehouse:passkey:*")
    assert started["flow_id"] not in f"{name} {rt.redis.client.get(name)}"
    assert 300 < rt.redis.client.ttl(name) <= 360


# --- what happens meanwhile --------------------------------------------------------------------


@pytest.mark.parametrize(
    "columns", [{"session_version": 9}, {"status": "disabled"}], ids=["sessions ended", "disabled"]
)
def test_a_login_overtaken_is_refused_and_changes_nothing(
    rt, signed_in, user, device, passkey, monkeypatch, columns
):
    real = ceremony.verify_authentication

    def overtaken(*args, **options):
        change_user(rt, user, **columns)
        return real(*args, **options)

    monkeypatch.setattr(ceremony, "verify_authentication", overtaken)
    log_in(signed_in.stranger(), device, count=5).fails(*REFUSED)
    assert audit_rows(rt, "user_passkey_login") == []
    with rt.transaction() as session:
        assert queries.get_passkey(session, user.id, passkey["id"]).sign_count == 0


def test_a_passkey_removed_meanwhile_is_refused(rt, signed_in, user, device, passkey, monkeypatch):
    real = ceremony.verify_authentication

    def overtaken(*args, **options):
        with rt.transaction() as session:
            queries.remove(session, queries.get_passkey(session, user.id, passkey["id"]))
        return real(*args, **options)

    monkeypatch.setattr(ceremony, "verify_authentication", overtaken)
    log_in(signed_in.stranger(), device).fails(*REFUSED)
    assert audit_rows(rt, "user_passkey_login") == []


def test_failed_passkeys_lock_nobody_out(stranger, user, device, passkey):
    for _ in range(12):
        log_in(stranger, device, flags=0).fails(*REFUSED)
    log_in(stranger, device).ok()
    stranger.stranger().login(user).ok()


def test_without_redis_passkeys_wait(make_app, rt, user, device, tmp_path):
    gone = redis_client.connect(f"unix://{tmp_path}/gone.sock")
    api = ApiClient(make_app(redis=gone))
    api.login(user).ok()
    assert api.get("/auth/passkeys").ok() == []
    for path in ("login/start", "register/start"):
        api.post(f"/auth/passkeys/{path}", {}).fails(503, "internal_server_error")
    for path in ("login/finish", "register/finish"):
        body = {"flow_id": "x", "credential": {}}
        api.post(f"/auth/passkeys/{path}", body).fails(503, "internal_server_error")


def test_the_account_is_unchanged_by_its_logins(rt, stranger, user, device, passkey):
    before = column_of(rt, user, "updated_at")
    log_in(stranger, device).ok()
    assert column_of(rt, user, "updated_at") == before
    assert unb64(device.passkeys[0].user_handle)
