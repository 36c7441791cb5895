"""Removing a factor and making new recovery codes."""

import json
from datetime import timedelta

import pytest

from app.core.access import COMMAND_LINE, AccountDisabled, TokenInvalid
from app.core.client import Client
from app.mfa import management, service
from app.mfa.models import MfaFactor, MfaRecoveryCode
from app.sessions import revocation
from app.sessions import service as sessions
from app.store import redis as redis_client
from tests.support.api import ApiClient
from tests.support.authenticator import enable_totp, finish_setup, start_setup
from tests.support.factories import audit_rows, change_user, count, make_user

UNKNOWN = 4711
REGENERATE = ("POST", "/auth/mfa/recovery-codes/regenerate")
REMOVE = ("DELETE", f"/auth/mfa/factors/{UNKNOWN}")
NONSENSE = ["", "  ", "12345", "1234567", "ABCD-EFGH-2345", "ABCD", "x" * 1000, "👍" * 6, None]


def remove(client, factor_id, code, **options):
    return client.delete(f"/auth/mfa/factors/{factor_id}", {"code": code}, **options)


def regenerate(client, code, **options):
    return client.post("/auth/mfa/recovery-codes/regenerate", {"code": code}, **options)


def remaining(client):
    return client.get("/auth/mfa").ok()["recovery_codes_remaining"]


# --- removing ----------------------------------------------------------------------------------


@pytest.mark.both_databases
def test_a_code_of_the_app_removes_the_factor_with_its_recovery_codes(rt, signed_in, enabled):
    answer = remove(signed_in, enabled.factor_id, enabled.app.code())
    assert answer.ok() is None
    data = signed_in.get("/auth/mfa").ok()
    assert data == {"enabled": False, "factors": [], "recovery_codes_remaining": 0}
    assert count(rt, MfaFactor) == count(rt, MfaRecoveryCode) == 0
    signed_in.refresh().ok()


def test_a_recovery_code_removes_the_factor_too(signed_in, enabled):
    remove(signed_in, enabled.factor_id, enabled.recovery_codes[4].lower()).ok()
    assert signed_in.get("/auth/mfa").ok()["enabled"] is False


def test_a_removed_factor_can_be_set_up_again(signed_in, enabled, clock):
    remove(signed_in, enabled.factor_id, enabled.app.code()).ok()
    again = enable_totp(signed_in, clock)
    assert again.app.secret != enabled.app.secret
    assert not set(again.recovery_codes) & set(enabled.recovery_codes)


def test_a_removal_voids_setups_and_logins_that_wait(rt, signed_in, user, clock):
    waiting, device = start_setup(signed_in, clock)
    enabled = enable_totp(signed_in, clock)
    login = signed_in.stranger().login(user).ok()
    assert login["status"] == "mfa_required"
    remove(signed_in, enabled.factor_id, enabled.app.code()).ok()
    finish_setup(signed_in, waiting, device.code()).fails(401, "auth.token_invalid")
    assert service.pending_logins(rt).find(login["flow_token"]) is None


def test_other_accounts_keep_theirs(rt, app, signed_in, enabled, clock):
    other = ApiClient(app)
    other.login(make_user(rt)).ok()
    theirs = enable_totp(other, clock)
    waiting = service.pending_logins(rt).open(4711, {}, timedelta(minutes=5), "mfa_")
    remove(signed_in, enabled.factor_id, enabled.app.code()).ok()
    assert remaining(other) == 10
    assert service.pending_logins(rt).find(waiting) is not None
    remove(other, theirs.factor_id, theirs.app.code()).ok()


def test_a_removal_is_recorded(rt, signed_in, enabled):
    code = enabled.app.code()
    remove(signed_in, enabled.factor_id, code, headers={"User-Agent": "Firefox"}).ok()
    [entry] = audit_rows(rt, "user_mfa_disable")
    assert (entry.entity_type, entry.entity_id) == ("mfa_factor", enabled.factor_id)
    assert (entry.ip_address, entry.user_agent) == ("127.0.0.1", "Firefox")
    assert json.loads(entry.details) == {
        "method": "totp",
        "factor_id": enabled.factor_id,
        "factor_name": "Authenticator app",
    }
    assert code not in str(entry)


def test_an_unknown_factor_uses_up_no_code(signed_in, enabled):
    code = enabled.recovery_codes[0]
    for factor_id in (UNKNOWN, 0, -1, "x", "9" * 30, "1.5", "%D9%A3"):
        for proof in (code, enabled.app.code()):
            answer = remove(signed_in, factor_id, proof)
            assert (answer.status, answer.code) == (404, "not_found"), factor_id
    assert remaining(signed_in) == 10
    remove(signed_in, enabled.factor_id, enabled.app.code()).ok()


def test_the_code_is_checked_before_the_id(signed_in, enabled):
    remove(signed_in, UNKNOWN, enabled.app.wrong_code()).fails(401, "auth.mfa_code_invalid")


def test_another_accounts_factor_is_not_found(rt, app, signed_in, enabled, clock):
    other = ApiClient(app)
    other.login(make_user(rt)).ok()
    theirs = enable_totp(other, clock)
    remove(other, enabled.factor_id, theirs.app.code()).fails(404, "not_found")
    assert remaining(signed_in) == remaining(other) == 10


# --- new recovery codes ------------------------------------------------------------------------


@pytest.mark.both_databases
def test_new_recovery_codes_take_the_place_of_the_old_ones(rt, signed_in, enabled):
    regenerate(signed_in, enabled.recovery_codes[0]).ok()
    codes = regenerate(signed_in, enabled.app.code()).ok()
    assert isinstance(codes, list)
    assert len(set(codes)) == 10
    assert remaining(signed_in) == count(rt, MfaRecoveryCode) == 10
    regenerate(signed_in, enabled.recovery_codes[1]).fails(401, "auth.mfa_code_invalid")
    regenerate(signed_in, codes[0]).ok()


def test_new_recovery_codes_are_recorded(rt, signed_in, enabled):
    codes = regenerate(signed_in, enabled.app.code()).ok()
    [entry] = audit_rows(rt, "user_mfa_recovery_codes_regenerate")
    assert (entry.entity_type, entry.entity_id) == ("mfa_factor", enabled.factor_id)
    assert json.loads(entry.details) == {"method": "totp", "recovery_code_count": 10}
    assert not any(code in str(entry) for code in codes)


# --- the code ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "path"), [REMOVE, REGENERATE])
def test_nonsense_is_no_proof(signed_in, enabled, method, path):
    codes = {code: signed_in.call(method, path, {"code": code}).code for code in NONSENSE}
    assert codes == dict.fromkeys(NONSENSE, "auth.mfa_code_invalid")
    signed_in.call(method, path, {}).fails(401, "auth.mfa_code_invalid")


@pytest.mark.parametrize(("method", "path"), [REMOVE, REGENERATE])
def test_an_account_without_a_factor_has_no_proof(signed_in, method, path):
    for code in ("123456", "ABCD-EFGH-2345", None):
        signed_in.call(method, path, {"code": code}).fails(401, "auth.mfa_code_invalid")


@pytest.mark.parametrize(("method", "path"), [REMOVE, REGENERATE])
def test_a_json_body_is_needed(signed_in, enabled, method, path):
    signed_in.call(method, path).fails(400, "bad_request")
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    signed_in.call(method, path, b"code=123456", headers=form).fails(400, "bad_request")


@pytest.mark.parametrize(("method", "path"), [REMOVE, REGENERATE])
def test_an_account_that_waits_for_its_activation_is_refused_first(
    rt, signed_in, enabled, user, method, path
):
    change_user(rt, user, activated_at=None)
    signed_in.call(method, path, {}).fails(403, "auth.pending_activation")


def test_a_code_of_the_app_is_good_once(signed_in, enabled):
    code = enabled.app.code()
    regenerate(signed_in, code).ok()
    regenerate(signed_in, code).fails(401, "auth.mfa_code_invalid")
    remove(signed_in, enabled.factor_id, code).fails(401, "auth.mfa_code_invalid")
    regenerate(signed_in, enabled.app.wait()).ok()


def test_after_a_code_older_ones_are_refused_too(signed_in, enabled):
    regenerate(signed_in, enabled.app.code(1)).ok()
    for steps in (-1, 0, 1):
        code = enabled.app.code(steps)
        regenerate(signed_in, code).fails(401, "auth.mfa_code_invalid")


def test_a_code_used_to_change_factors_is_still_good_for_a_login(signed_in, user, enabled):
    regenerate(signed_in, enabled.app.code()).ok()
    stranger = signed_in.stranger()
    token = stranger.login(user).ok()["flow_token"]
    body = {"flow_token": token, "method": "totp", "code": enabled.app.code()}
    stranger.post("/auth/mfa/challenge/verify", body).ok()


def test_a_code_used_for_a_login_is_still_good_to_change_factors(signed_in, user, enabled):
    stranger = signed_in.stranger()
    token = stranger.login(user).ok()["flow_token"]
    body = {"flow_token": token, "method": "totp", "code": enabled.app.code()}
    stranger.post("/auth/mfa/challenge/verify", body).ok()
    regenerate(signed_in, enabled.app.code()).ok()


def test_changing_factors_is_no_use_of_the_factor_to_sign_in(signed_in, enabled):
    regenerate(signed_in, enabled.app.code()).ok()
    assert signed_in.get("/auth/mfa").ok()["factors"][0]["last_used_at"] is None


def test_a_used_recovery_code_says_so(signed_in, user, enabled):
    code = enabled.recovery_codes[0]
    stranger = signed_in.stranger()
    token = stranger.login(user).ok()["flow_token"]
    body = {"flow_token": token, "method": "recovery_code", "code": code}
    stranger.post("/auth/mfa/challenge/verify", body).ok()
    assert remaining(signed_in) == 9
    regenerate(signed_in, code).fails(401, "auth.mfa_recovery_code_used")
    remove(signed_in, enabled.factor_id, code).fails(401, "auth.mfa_recovery_code_used")


def test_another_accounts_recovery_code_is_just_wrong(rt, app, enabled, clock):
    other = ApiClient(app)
    other.login(make_user(rt)).ok()
    enable_totp(other, clock)
    regenerate(other, enabled.recovery_codes[0]).fails(401, "auth.mfa_code_invalid")


# --- guessing ----------------------------------------------------------------------------------


def test_guesses_count_like_failed_logins(signed_in, user, enabled):
    """Who has stolen a session must not get at the factor by trying all codes."""
    for _ in range(4):
        regenerate(signed_in, enabled.app.wrong_code()).fails(401, "auth.mfa_code_invalid")
        remove(signed_in, UNKNOWN, "ABCD-EFGH-2345").fails(401, "auth.mfa_code_invalid")
    for _ in range(2):
        signed_in.stranger().login(user, "wrong").fails(401, "auth.credentials_failed")
    for answer in (
        regenerate(signed_in, enabled.app.code()),
        remove(signed_in, enabled.factor_id, enabled.recovery_codes[0]),
        signed_in.stranger().login(user),
    ):
        answer.fails(429, "rate_limited")
        assert answer.retry_after == 300
    assert remaining(signed_in) == 10


def test_a_right_code_is_not_counted_and_clears_no_guess(signed_in, enabled, clock):
    for _ in range(9):
        regenerate(signed_in, enabled.app.wrong_code()).fails(401, "auth.mfa_code_invalid")
    for _ in range(2):
        regenerate(signed_in, enabled.app.code()).ok()
        clock.advance(seconds=30)
    regenerate(signed_in, enabled.app.wrong_code()).fails(401, "auth.mfa_code_invalid")
    regenerate(signed_in, enabled.app.code()).fails(429, "rate_limited")


def test_a_right_code_for_an_unknown_factor_is_no_guess(signed_in, enabled):
    for _ in range(11):
        remove(signed_in, UNKNOWN, enabled.app.code()).fails(404, "not_found")
    remove(signed_in, enabled.factor_id, enabled.app.code()).ok()


def test_no_code_at_all_is_no_guess(signed_in, enabled):
    for _ in range(12):
        regenerate(signed_in, None).fails(401, "auth.mfa_code_invalid")
    regenerate(signed_in, enabled.app.code()).ok()


# --- what happens meanwhile --------------------------------------------------------------------

MEANWHILE = {
    "session ended": (
        lambda rt, user, session_id: revocation.revoke_any(rt, COMMAND_LINE, session_id),
        TokenInvalid,
    ),
    "account disabled": (
        lambda rt, user, _: change_user(rt, user, status="disabled"),
        AccountDisabled,
    ),
}


@pytest.mark.parametrize("event", MEANWHILE)
def test_a_change_overtaken_is_refused_and_uses_up_no_code(rt, signed_in, user, enabled, event):
    stale = sessions.authenticate(rt, signed_in.access_token)
    act, refusal = MEANWHILE[event]
    act(rt, user, stale.session_id)
    client, code = Client.of("127.0.0.1", None), enabled.recovery_codes[0]
    with pytest.raises(refusal):
        management.remove_factor(rt, stale, str(enabled.factor_id), code=code, client=client)
    with pytest.raises(refusal):
        management.regenerate_recovery_codes(rt, stale, code=code, client=client)
    assert count(rt, MfaFactor) == 1
    assert count(rt, MfaRecoveryCode, MfaRecoveryCode.used_at.is_(None)) == 10


def test_without_redis_factors_can_be_managed(make_app, signed_in, enabled, tmp_path):
    gone = redis_client.connect(f"unix://{tmp_path}/gone.sock")
    api = ApiClient(make_app(redis=gone))
    for name, value in signed_in.cookies.items():
        api.set_cookie(name, value)
    assert remaining(api) == 10
    code = regenerate(api, enabled.app.code()).ok()[0]
    remove(api, enabled.factor_id, code).ok()
