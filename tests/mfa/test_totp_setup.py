"""Setting up an authenticator app."""

import json
import re
from contextlib import contextmanager

import pyotp
import pytest

from app.core.access import COMMAND_LINE, AccountDisabled, TokenInvalid
from app.core.client import Client
from app.core.errors import DatabaseUnavailable
from app.mfa import management, queries
from app.mfa.models import MfaFactor, MfaRecoveryCode
from app.sessions import revocation
from app.sessions import service as sessions
from app.store import redis as redis_client
from app.users.errors import PendingActivation
from tests.support.api import ApiClient
from tests.support.authenticator import enable_totp, finish_setup, start_setup
from tests.support.factories import audit_rows, change_user, configure, count, make_user

RECOVERY_CODE = re.compile(r"[A-Z2-7]{4}(-[A-Z2-7]{4}){2}")
NONE = {"enabled": False, "factors": [], "recovery_codes_remaining": 0}


def show(client):
    return client.get("/auth/mfa").ok()


# --- what there is -----------------------------------------------------------------------------


def test_without_a_factor_there_is_nothing(signed_in):
    assert show(signed_in) == NONE


def test_an_enabled_factor_is_shown(signed_in, enabled):
    assert show(signed_in) == {
        "enabled": True,
        "factors": [
            {
                "id": enabled.factor_id,
                "method": "totp",
                "name": "Authenticator app",
                "enabled_at": "2026-03-02T09:30:00Z",
                "last_used_at": None,
            }
        ],
        "recovery_codes_remaining": 10,
    }


def test_everybody_sees_only_their_own(rt, app, enabled):
    other = ApiClient(app)
    other.login(make_user(rt)).ok()
    assert show(other) == NONE


# --- start -------------------------------------------------------------------------------------


def test_a_setup_starts_with_what_an_authenticator_app_scans(rt, signed_in, user, clock):
    configure(rt, branding_title="Ada & Co")
    data = signed_in.post("/auth/mfa/totp/setup/start").ok()
    assert set(data) == {"flow_token", "expires_in", "secret", "otpauth_uri"}
    assert re.fullmatch(r"mfs_[0-9a-f]{32}", data["flow_token"])
    assert data["expires_in"] == 300
    assert re.fullmatch(r"[A-Z2-7]{32}", data["secret"])
    assert data["otpauth_uri"] == (
        f"otpauth://totp/Ada%20%26%20Co:{user.username}%40example.com?secret={data['secret']}"
        "&issuer=Ada%20%26%20Co&algorithm=SHA1&digits=6&period=30"
    )
    scanned = pyotp.parse_uri(data["otpauth_uri"])
    finish_setup(signed_in, data["flow_token"], scanned.at(clock.now())).ok()


def test_the_longest_title_gives_a_code_that_apps_can_scan(rt, signed_in, user):
    configure(rt, branding_title="🗂" * 120)
    uri = signed_in.post("/auth/mfa/totp/setup/start").ok()["otpauth_uri"]
    assert pyotp.parse_uri(uri).name == user.email
    assert signed_in.post("/docs/qr-code", {"otpauth_uri": uri}).status == 200


def test_starting_changes_nothing_and_is_not_recorded(rt, signed_in):
    start_setup(signed_in, rt.clock)
    assert show(signed_in) == NONE
    assert [row.action for row in audit_rows(rt)] == ["user_login"]


def test_another_start_leaves_the_first_setup_open(signed_in, clock):
    (first, app), (second, other) = (start_setup(signed_in, clock) for _ in range(2))
    assert first != second
    assert app.secret != other.secret
    finish_setup(signed_in, first, app.code()).ok()


def test_a_start_needs_no_verified_address(rt, signed_in, user):
    change_user(rt, user, email_verified_at=None)
    signed_in.post("/auth/mfa/totp/setup/start").ok()


def test_a_second_factor_cannot_be_started(signed_in, enabled):
    answer = signed_in.post("/auth/mfa/totp/setup/start")
    answer.fails(403, "auth.mfa_factor_already_exists")


# --- finish ------------------------------------------------------------------------------------


@pytest.mark.both_databases
def test_the_first_code_enables_the_factor_and_gives_ten_recovery_codes(rt, signed_in, clock):
    flow_token, app = start_setup(signed_in, clock)
    data = finish_setup(signed_in, flow_token, app.code(), name=" My phone ").ok()
    assert set(data) == {"factor", "recovery_codes"}
    assert data["factor"] == {
        "id": data["factor"]["id"],
        "method": "totp",
        "name": "My phone",
        "enabled_at": "2026-03-02T09:30:00Z",
        "last_used_at": None,
    }
    assert len(set(data["recovery_codes"])) == 10
    assert all(RECOVERY_CODE.fullmatch(code) for code in data["recovery_codes"])
    assert show(signed_in)["factors"] == [data["factor"]]


@pytest.mark.parametrize("body", [{}, {"name": None}, {"name": " \t "}])
def test_without_a_name_it_is_the_authenticator_app(signed_in, clock, body):
    enable_totp(signed_in, clock, **body)
    assert show(signed_in)["factors"][0]["name"] == "Authenticator app"


def test_a_name_has_at_most_128_characters(signed_in, clock):
    flow_token, app = start_setup(signed_in, clock)
    for name in ("x" * 129, "😀" * 129):
        finish_setup(signed_in, flow_token, app.code(), name=name).fails(400, "bad_request")
    finish_setup(signed_in, flow_token, app.code(), name=" " + "😀" * 128 + " ").ok()
    assert show(signed_in)["factors"][0]["name"] == "😀" * 128


@pytest.mark.parametrize("steps", [-1, 1])
def test_the_clock_of_the_device_may_be_off_by_one_step(signed_in, clock, steps):
    flow_token, app = start_setup(signed_in, clock)
    finish_setup(signed_in, flow_token, app.code(steps)).ok()


def test_token_and_code_may_be_spaced(signed_in, clock):
    flow_token, app = start_setup(signed_in, clock)
    code = app.code()
    finish_setup(signed_in, f" {flow_token}\n", f" {code[:3]} {code[3:]} ").ok()


def test_sessions_go_on(signed_in, user, clock):
    phone = signed_in.stranger()
    phone.login(user).ok()
    enable_totp(signed_in, clock)
    signed_in.me().ok()
    phone.me().ok()
    phone.refresh().ok()


def test_enabling_is_recorded_without_secrets(rt, signed_in, clock):
    flow_token, app = start_setup(signed_in, clock)
    headers = {"User-Agent": "Firefox"}
    body = {"flow_token": flow_token, "code": app.code(), "name": "Phone"}
    data = signed_in.post("/auth/mfa/totp/setup/finish", body, headers=headers).ok()
    [entry] = audit_rows(rt, "user_mfa_enable")
    factor_id = data["factor"]["id"]
    assert (entry.entity_type, entry.entity_id, entry.entity_name) == (
        "mfa_factor",
        factor_id,
        "Phone",
    )
    assert (entry.ip_address, entry.user_agent) == ("127.0.0.1", "Firefox")
    assert json.loads(entry.details) == {
        "method": "totp",
        "factor_id": factor_id,
        "factor_name": "Phone",
        "recovery_code_count": 10,
    }
    for secret in (app.secret, app.code(), flow_token, *data["recovery_codes"]):
        assert secret not in str(entry)


# --- refusals, in their order ------------------------------------------------------------------


def test_the_checks_come_in_their_order(rt, app, signed_in, user, clock):
    """Each request has every fault of those after it, too."""
    flow_token, device = start_setup(signed_in, clock)
    other = ApiClient(app)
    other.login(make_user(rt)).ok()
    theirs, their_device = start_setup(other, clock)
    long_name = {"name": "x" * 129}

    finish_setup(signed_in, "mfs_nonsense", "x", **long_name).fails(400, "bad_request")
    change_user(rt, user, activated_at=None)
    finish_setup(signed_in, "mfs_nonsense", "x").fails(403, "auth.pending_activation")
    change_user(rt, user, activated_at=clock.now())
    finish_setup(signed_in, "mfs_nonsense", "x").fails(401, "auth.token_invalid")
    finish_setup(signed_in, theirs, "x").fails(403, "forbidden")
    finish_setup(signed_in, theirs, their_device.code()).fails(403, "forbidden")
    finish_setup(signed_in, flow_token, "x").fails(400, "bad_request")
    finish_setup(signed_in, flow_token, device.wrong_code()).fails(401, "auth.mfa_code_invalid")
    finish_setup(signed_in, flow_token, device.code()).ok()
    for token in ("mfs_nonsense", theirs, flow_token):
        answer = finish_setup(signed_in, token, "x")
        answer.fails(403, "auth.mfa_factor_already_exists")
    finish_setup(other, theirs, their_device.code()).ok()


def test_an_unknown_setup_is_refused_as_a_token(signed_in):
    for token in ("", "  ", "mfs_", "mfs_" + "0" * 32, "mfa_" + "0" * 32, "ä"):
        answer = finish_setup(signed_in, token, "123456")
        assert (answer.status, answer.code) == (401, "auth.token_invalid"), token
        assert answer.set_cookies == {}


def test_a_setup_lives_five_minutes(signed_in, clock):
    flow_token, app = start_setup(signed_in, clock)
    clock.advance(seconds=299.999)
    finish_setup(signed_in, flow_token, app.wrong_code()).fails(401, "auth.mfa_code_invalid")
    clock.advance(seconds=0.001)
    finish_setup(signed_in, flow_token, app.code()).fails(401, "auth.token_invalid")


def test_its_life_is_a_setting(rt, signed_in, clock):
    configure(rt, auth_mfa_flow_ttl_secs=60)
    data = signed_in.post("/auth/mfa/totp/setup/start").ok()
    assert data["expires_in"] == 60
    clock.advance(seconds=60)
    answer = finish_setup(signed_in, data["flow_token"], "123456")
    answer.fails(401, "auth.token_invalid")


def test_a_finished_setup_is_used_up_even_when_its_factor_is_gone(signed_in, clock):
    flow_token, app = start_setup(signed_in, clock)
    factor = finish_setup(signed_in, flow_token, app.code()).ok()["factor"]
    signed_in.delete(f"/auth/mfa/factors/{factor['id']}", {"code": app.wait()}).ok()
    finish_setup(signed_in, flow_token, app.wait()).fails(401, "auth.token_invalid")


def test_anything_but_six_digits_is_a_bad_request(signed_in, clock):
    flow_token, _ = start_setup(signed_in, clock)
    for code in ("", "12345", "1234567", "abcdef", "ABCD-EFGH-2345"):
        answer = finish_setup(signed_in, flow_token, code)
        assert (answer.status, answer.code) == (400, "bad_request"), code


def test_wrong_codes_may_be_tried_without_end(signed_in, clock):
    """Whoever tries them holds the secret."""
    flow_token, app = start_setup(signed_in, clock)
    for _ in range(15):
        finish_setup(signed_in, flow_token, app.wrong_code()).fails(401, "auth.mfa_code_invalid")
    finish_setup(signed_in, flow_token, app.code()).ok()


# --- what happens meanwhile --------------------------------------------------------------------


MEANWHILE = {
    "session ended": (
        lambda rt, user, session_id: revocation.revoke_any(rt, COMMAND_LINE, session_id),
        TokenInvalid,
        lambda rt, user: None,
    ),
    "account disabled": (
        lambda rt, user, _: change_user(rt, user, status="disabled"),
        AccountDisabled,
        lambda rt, user: change_user(rt, user, status="active"),
    ),
    "activation taken back": (
        lambda rt, user, _: change_user(rt, user, activated_at=None),
        PendingActivation,
        lambda rt, user: change_user(rt, user, activated_at=rt.clock.now()),
    ),
}


@pytest.mark.parametrize("event", MEANWHILE)
def test_a_finish_overtaken_is_refused_and_keeps_the_setup(rt, signed_in, user, clock, event):
    flow_token, app = start_setup(signed_in, clock)
    stale = sessions.authenticate(rt, signed_in.access_token)
    act, refusal, undo = MEANWHILE[event]
    act(rt, user, stale.session_id)
    with pytest.raises(refusal):
        management.finish_setup(
            rt,
            stale,
            flow_token=flow_token,
            code=app.code(),
            name=None,
            client=Client.of("127.0.0.1", None),
        )
    assert count(rt, MfaFactor) == count(rt, MfaRecoveryCode) == 0
    assert audit_rows(rt, "user_mfa_enable") == []
    undo(rt, user)
    signed_in.login(user).ok()
    finish_setup(signed_in, flow_token, app.code()).ok()


@pytest.mark.parametrize("how", ["changed", "reset", "revoked"])
def test_a_setup_ends_with_the_accounts_sessions(rt, signed_in, user, clock, mailbox, how):
    """Whoever had the account a moment ago must not have prepared the next way in."""
    flow_token, app = start_setup(signed_in, clock)
    password = user.password if how == "revoked" else "another good one"
    if how == "changed":
        body = {"current_password": user.password, "new_password": password}
        signed_in.put("/auth/password", body).ok()
    elif how == "reset":
        signed_in.post("/auth/password/reset/request", {"email": user.email}).ok()
        body = {"token": mailbox.token(mailbox.only()), "new_password": password}
        signed_in.post("/auth/password/reset/confirm", body).ok()
    else:
        with rt.transaction() as session:
            sessions.revoke_all(rt, session, user.id)
    if how != "changed":
        signed_in.login(user, password).ok()
    finish_setup(signed_in, flow_token, app.code()).fails(401, "auth.token_invalid")
    finish_setup(signed_in, flow_token, "x").fails(401, "auth.token_invalid")
    assert show(signed_in) == NONE
    flow_token, app = start_setup(signed_in, clock)
    finish_setup(signed_in, flow_token, app.code()).ok()


def test_ending_other_sessions_leaves_the_setup(signed_in, clock):
    flow_token, app = start_setup(signed_in, clock)
    signed_in.delete("/auth/sessions/others").ok()
    finish_setup(signed_in, flow_token, app.code()).ok()


def test_a_setup_whose_outcome_is_unknown_makes_no_second_factor(
    rt, signed_in, user, clock, monkeypatch
):
    flow_token, app = start_setup(signed_in, clock)
    real = rt.database.transaction

    @contextmanager
    def loses_the_answer_to_its_commit():
        with real() as session:
            yield session
        raise DatabaseUnavailable

    with monkeypatch.context() as patch:
        patch.setattr(rt.database, "transaction", loses_the_answer_to_its_commit)
        finish_setup(signed_in, flow_token, app.code()).fails(503, "database.error")
    answer = finish_setup(signed_in, flow_token, app.code())
    answer.fails(403, "auth.mfa_factor_already_exists")
    assert count(rt, MfaFactor) == 1


def test_redis_is_not_asked_within_a_transaction(rt, signed_in, clock, monkeypatch):
    flow_token, app = start_setup(signed_in, clock)
    open_transactions, asked_within = [], []
    real_transaction, real_command = rt.database.transaction, rt.redis.client.execute_command

    @contextmanager
    def transaction():
        open_transactions.append(1)
        try:
            with real_transaction() as session:
                yield session
        finally:
            open_transactions.pop()

    def command(*arguments, **options):
        asked_within.extend(open_transactions)
        return real_command(*arguments, **options)

    monkeypatch.setattr(rt.database, "transaction", transaction)
    monkeypatch.setattr(rt.redis.client, "execute_command", command)
    finish_setup(signed_in, flow_token, app.code()).ok()
    assert asked_within == []


def test_a_setup_outlives_a_database_that_fails(signed_in, clock, monkeypatch):
    flow_token, app = start_setup(signed_in, clock)

    def fail(*_args, **_options):
        raise DatabaseUnavailable

    monkeypatch.setattr(queries, "add_totp", fail)
    finish_setup(signed_in, flow_token, app.code()).fails(503, "database.error")
    monkeypatch.undo()
    finish_setup(signed_in, flow_token, app.code()).ok()


def test_without_redis_a_setup_waits(make_app, rt, user, tmp_path):
    gone = redis_client.connect(f"unix://{tmp_path}/gone.sock")
    api = ApiClient(make_app(redis=gone))
    api.login(user).ok()
    assert show(api) == NONE
    api.post("/auth/mfa/totp/setup/start").fails(503, "internal_server_error")
    finish_setup(api, "mfs_x", "123456").fails(503, "internal_server_error")
