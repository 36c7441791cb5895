"""What an operator does to second factors: reset them, rotate the keys."""

import json

import pytest
import sqlalchemy as sa

from app.mfa import service
from app.mfa.models import MfaFactor, MfaRecoveryCode
from app.sessions.models import LoginSession
from tests.support.authenticator import finish_setup, start_setup
from tests.support.factories import audit_rows, column_of, count, make_user


@pytest.fixture
def app(make_app):
    """With keys in a file, which can be rotated."""
    return make_app(secret_keys=())


def sealed(rt):
    with rt.reading() as connection:
        return connection.execute(sa.select(MfaFactor.secret)).scalar_one()


# --- reset -------------------------------------------------------------------------------------


def test_a_reset_removes_factors_and_codes_and_ends_every_session(
    line, rt, signed_in, user, enabled
):
    version = column_of(rt, user, "session_version")
    account = line.json("users", "reset-mfa", user.username)
    assert account == line.json("users", "show", user.username)
    assert account["id"] == user.id
    assert count(rt, MfaFactor) == count(rt, MfaRecoveryCode) == 0
    assert column_of(rt, user, "session_version") == version + 1
    signed_in.me().fails(401, "auth.token_invalid")
    signed_in.refresh().fails(401, "auth.token_invalid")
    assert count(rt, LoginSession, LoginSession.revoked_at.is_(None)) == 0
    assert signed_in.stranger().login(user).ok()["status"] == "authenticated"


def test_a_reset_voids_setups_and_logins_that_wait(line, rt, app, signed_in, user, clock):
    waiting, device = start_setup(signed_in, clock)
    token, other = start_setup(signed_in, clock)
    finish_setup(signed_in, token, other.code()).ok()
    stranger = signed_in.stranger()
    login = stranger.login(user).ok()["flow_token"]
    line.json("users", "reset-mfa", str(user.id))
    body = {"flow_token": login, "method": "totp", "code": other.code()}
    stranger.post("/auth/mfa/challenge/verify", body).fails(401, "auth.mfa_flow_invalid")
    stranger.login(user).ok()
    finish_setup(stranger, waiting, device.code()).fails(401, "auth.token_invalid")
    assert service.totp_setups(rt).find(waiting) is None


def test_a_reset_is_recorded_and_told_to_the_owner(line, rt, user, enabled, mailbox):
    mailbox.read()
    line.json("users", "reset-mfa", user.email)
    [entry] = audit_rows(rt, "admin_reset_user_mfa")
    assert (entry.user_id, entry.entity_type, entry.entity_id) == (0, "user", user.id)
    assert json.loads(entry.details) == {"removed_factors": 1}
    assert "app was removed" in mailbox.only().get_body(("plain",)).get_content()


def test_a_reset_without_factors_ends_sessions_all_the_same(line, rt, signed_in, user, mailbox):
    line.json("users", "reset-mfa", user.username)
    signed_in.me().fails(401, "auth.token_invalid")
    assert mailbox.read() == []


def test_a_reset_leaves_other_accounts_alone(line, rt, signed_in, user, enabled):
    line.json("users", "reset-mfa", make_user(rt).username)
    assert signed_in.get("/auth/mfa").ok()["recovery_codes_remaining"] == 10


def test_a_reset_of_nobody_is_refused(line, user):
    line.refuses("not_found", "users", "reset-mfa", "nobody")
    assert line("users", "reset-mfa").exit_code == 2


def test_a_reset_tells_whether_there_was_anything_to_reset(line, user, enabled):
    told = [line("users", "reset-mfa", user.username).text for _ in range(2)]
    assert told == [
        f"{user.username} (id {user.id}) no longer has a second factor",
        f"{user.username} (id {user.id}) had no second factor; its sessions were ended",
    ]


# --- keys --------------------------------------------------------------------------------------


def test_rotated_keys_seal_the_secrets_anew_and_every_code_still_works(
    line, rt, signed_in, enabled
):
    old = sealed(rt)
    line.json("mail", "flush")
    assert line.json("keys", "rotate")["resealed"] == 1
    assert rt.secret_box.is_current(sealed(rt))
    assert sealed(rt) != old
    line.json("mail", "flush")  # which tells the administrators of the new key
    assert line.json("keys", "rotate")["resealed"] == 1
    path = "/auth/mfa/recovery-codes/regenerate"
    codes = signed_in.post(path, {"code": enabled.recovery_codes[3]}).ok()
    signed_in.post(path, {"code": enabled.app.code()}).ok()
    signed_in.post(path, {"code": codes[0]}).fails(401, "auth.mfa_code_invalid")


def test_a_setup_begun_before_a_rotation_can_be_finished_after_it(line, signed_in, clock):
    flow_token, app = start_setup(signed_in, clock)
    line.json("keys", "rotate")
    finish_setup(signed_in, flow_token, app.code()).ok()


def test_a_secret_that_cannot_be_read_is_left_alone(line, rt, enabled):
    line.json("mail", "flush")
    with rt.transaction() as session:
        session.execute(sa.update(MfaFactor).values(secret="v1:gone:AAAA:AAAA"))
    ran = line("keys", "rotate", "--json")
    told = json.loads(ran.stdout)
    assert (ran.exit_code, told["resealed"], told["unreadable"]) == (1, 0, 1)
    assert sealed(rt) == "v1:gone:AAAA:AAAA"


def test_what_is_sealed_under_the_newest_key_is_left_alone(rt, enabled):
    before = sealed(rt)
    with rt.transaction() as session:
        assert service.reseal(rt, session) == (0, 0)
    assert sealed(rt) == before


@pytest.mark.both_databases
def test_many_secrets_are_sealed_anew_page_by_page(line, rt, app, clock, enabled, monkeypatch):
    monkeypatch.setattr("app.store.bulk.BATCH_ROWS", 2)
    others = [make_user(rt).id for _ in range(4)]
    with rt.transaction() as session:
        for user_id in others:
            secret = rt.secret_box.seal("A" * 32, f"mfa_factor:{user_id}")
            values = {"method": "totp", "name": "x", "enabled_at": clock.now()}
            session.execute(sa.insert(MfaFactor).values(user_id=user_id, secret=secret, **values))
    line.json("mail", "flush")
    assert line.json("keys", "rotate")["resealed"] == 5
