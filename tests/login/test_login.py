"""POST /auth/login."""

from functools import partial

import pytest
import sqlalchemy as sa

from app.core.config import Argon2Cost
from app.crypto.passwords import Passwords
from app.sessions.models import LoginSession
from tests.support.api import ApiClient
from tests.support.factories import (
    audit_rows,
    change_user,
    column_of,
    configure,
    count,
    make_user,
)
from tests.support.races import run_concurrently

WRONG = "not the password"


def test_a_login_gives_cookies_and_tells_how_long_the_access_token_lives(api, user):
    answer = api.login(user)
    assert answer.ok() == {"status": "authenticated", "expires_in": 900}
    assert set(answer.set_cookies) == {
        "service_access",
        "service_refresh",
        "service_csrf",
        "service_device",
    }
    assert api.me().ok()["id"] == user.id


@pytest.mark.both_databases
def test_the_username_is_matched_without_regard_to_case(rt, api):
    ada = make_user(rt, username="Ada.Lovelace", email="ada@example.com")
    for typed in ("Ada.Lovelace", "ada.lovelace", "ADA.LOVELACE", "  ada.lovelace\t"):
        api.login(typed, ada.password).ok()
        assert api.me().ok()["username"] == "Ada.Lovelace"


@pytest.mark.both_databases
def test_the_address_is_matched_without_regard_to_case(rt, api):
    ada = make_user(rt, username="ada", email="Ada@example.com")
    for typed in ("ada@example.com", "ADA@Example.Com", "  Ada@EXAMPLE.com "):
        api.login(typed, ada.password).ok()
        assert api.me().ok()["id"] == ada.id


def test_an_internationalised_domain_is_matched_in_both_forms(rt, api, user):
    ada = make_user(rt, email="ada@bücher.example")
    api.login("ada@bücher.example", ada.password).ok()
    api.login("ada@xn--bcher-kva.example", ada.password).ok()


def test_the_new_session_is_the_current_one(api, user):
    api.login(user, headers={"User-Agent": "Firefox"}).ok()
    [session] = api.get("/auth/sessions").ok()
    assert session["is_current"] is True
    assert (session["ip_address"], session["user_agent"]) == ("127.0.0.1", "Firefox")


def test_every_login_is_a_session_of_its_own(api, user):
    first, second = api.stranger(), api.stranger()
    first.login(user).ok()
    second.login(user).ok()
    assert first.refresh_token != second.refresh_token
    assert len(first.get("/auth/sessions").ok()) == 2


def test_a_login_is_audited_with_what_was_typed(rt, api, user):
    api.login(user.email.upper(), user.password, headers={"User-Agent": "curl"}).ok()
    [entry] = audit_rows(rt, "user_login")
    assert (entry.user_id, entry.entity_type) == (user.id, "auth_session")
    assert entry.entity_name == user.email.upper()
    assert entry.details == '{"mfa_required": false, "password_change_required": false}'
    assert (entry.ip_address, entry.user_agent) == ("127.0.0.1", "curl")


@pytest.mark.both_databases
def test_no_letter_outside_ascii_stands_for_one_of_it(rt, api):
    kate = make_user(rt, username="kate", email="kate@example.com")
    for kelvin in ("\u212aate", "\u212aate@example.com"):
        api.login(kelvin.replace("\u212a", "K"), kate.password).ok()
        api.login(kelvin, kate.password).fails(401, "auth.credentials_failed")


def test_a_failed_login_opens_nothing_and_is_recorded(rt, api, user):
    answer = api.login(user, WRONG).fails(401, "auth.credentials_failed")
    assert answer.set_cookies == {}
    assert [entry.action for entry in audit_rows(rt)] == ["user_login_failed"]
    assert count(rt, LoginSession) == 0


# --- who is refused ----------------------------------------------------------------------------


def test_refusals_do_not_tell_accounts_from_strangers(rt, api, user):
    disabled = make_user(rt, status="disabled")
    pending = make_user(rt, activated=False, verified=False)
    passwordless = make_user(rt, password=None)
    refused = [
        api.login(user, WRONG),
        api.login("nobody", WRONG),
        api.login("nobody@example.com", WRONG),
        api.login("@", WRONG),
        api.login("", WRONG),
        api.login("x" * 1024, WRONG),
        api.login(disabled, WRONG),
        api.login(pending, WRONG),
        api.login(passwordless, WRONG),
        api.login(passwordless, ""),
        api.login(user, ""),
        api.login(user, WRONG * 200),
    ]
    for answer in refused:
        answer.fails(401, "auth.credentials_failed")
    assert len({answer.body for answer in refused}) == 1
    unlike = {"X-Request-ID", "Content-Length"}
    assert len({tuple(h for h in a.headers if h[0] not in unlike) for a in refused}) == 1


def test_a_disabled_account_is_told_only_to_who_knows_the_password(rt, api, user):
    disabled = make_user(rt, status="disabled")
    answer = api.login(disabled).fails(403, "auth.account_disabled")
    assert answer.set_cookies == {}
    assert count(rt, LoginSession) == 0


def test_an_account_waiting_for_activation_is_told_only_to_who_knows_the_password(rt, api, user):
    pending = make_user(rt, activated=False, verified=False)
    api.login(pending).fails(403, "auth.pending_activation")
    assert count(rt, LoginSession) == 0


def test_disabled_comes_before_pending(rt, api, user):
    both = make_user(rt, status="disabled", activated=False)
    api.login(both).fails(403, "auth.account_disabled")


def test_an_unverified_address_alone_does_not_matter(rt, api, user):
    unverified = make_user(rt, verified=False)
    api.login(unverified).ok()
    assert api.me().ok()["email_verified"] is False


def test_the_password_is_not_trimmed_and_case_matters(rt, api, user):
    spaced = make_user(rt, password=" Spaced Password ")
    api.login(spaced).ok()
    for typed in ("Spaced Password", " spaced password ", " Spaced Password"):
        api.login(spaced, typed).fails(401, "auth.credentials_failed")


def test_a_password_typed_on_another_keyboard_is_the_same(rt, api, user):
    composed, decomposed = "Zoë-password", "Zoe\u0308-password"
    api.login(make_user(rt, password=composed), decomposed).ok()
    api.login(make_user(rt, password=decomposed), composed).ok()


def test_a_password_that_grows_when_it_is_normalized_can_be_set_and_used(api, user):
    """128 signs as typed count, however many NFKC makes of them."""
    grown = "\ufdfa" * 128
    api.login(user).ok()
    body = {"current_password": user.password, "new_password": grown}
    api.put("/auth/password", body).ok()
    api.login(user, grown).ok()
    api.login(user, "\ufdfa" * 127).fails(401, "auth.credentials_failed")
    api.login(user, "\ufdfa" * 129).fails(401, "auth.credentials_failed")


def test_a_password_of_129_signs_never_matches(rt, api, user):
    """Not even a hash of just that, which no rule of this service let in, nor of its beginning."""
    for long in ("x" * 129, "\ufdfa" * 129):
        for stored in (long, long[:128]):
            change_user(rt, user, password_hash=rt.passwords.hash(stored))
            api.login(user, long).fails(401, "auth.credentials_failed")


def test_a_username_with_the_look_of_another_is_another(rt, api, user):
    make_user(rt, username="kim")
    api.login("k\u0131m", "a good long password").fails(401, "auth.credentials_failed")


def test_switching_password_login_off_refuses_before_the_account_is_looked_up(rt, api, user):
    configure(rt, auth_password_login_enabled=False)
    for who, password in ((user.username, user.password), ("nobody", WRONG)):
        api.login(who, password).fails(403, "auth.password_login_disabled")
    configure(rt, auth_password_login_enabled=True)
    for _ in range(10):
        api.login(user, WRONG).fails(401, "auth.credentials_failed")


# --- forced password change --------------------------------------------------------------------


def test_a_forced_change_gives_a_restricted_session(rt, api, user):
    change_user(rt, user, must_change_password=True)
    answer = api.login(user)
    assert answer.ok() == {"status": "password_change_required", "expires_in": 900}
    assert set(answer.set_cookies) == {
        "service_access",
        "service_refresh",
        "service_csrf",
        "service_device",
    }
    assert api.me().ok()["must_change_password"] is True
    api.get("/auth/sessions").fails(403, "auth.password_change_required")
    api.refresh().fails(403, "auth.password_change_required")
    [entry] = audit_rows(rt, "user_login")
    assert entry.details == '{"mfa_required": false, "password_change_required": true}'


def test_a_restricted_session_may_log_out(rt, api, user):
    change_user(rt, user, must_change_password=True)
    api.login(user).ok()
    api.post("/auth/logout").ok()
    assert api.cookies == {}


def test_a_session_from_before_the_change_was_forced_is_void(rt, signed_in, user):
    change_user(rt, user, must_change_password=True)
    signed_in.me().fails(401, "auth.token_invalid")
    signed_in.refresh().fails(403, "auth.password_change_required")


def test_a_restricted_session_is_void_once_nothing_is_forced(rt, api, user):
    change_user(rt, user, must_change_password=True)
    api.login(user).ok()
    change_user(rt, user, must_change_password=False)
    api.me().fails(401, "auth.token_invalid")


def test_nothing_is_forced_while_password_login_is_off(rt, api, user):
    api.login(user).ok()
    change_user(rt, user, must_change_password=True)
    configure(rt, auth_password_login_enabled=False)
    assert api.me().ok()["must_change_password"] is True
    api.get("/auth/sessions").ok()
    api.refresh().ok()


# --- hashes ------------------------------------------------------------------------------------


def test_a_hash_with_old_parameters_is_renewed_at_login(rt, api, user):
    old = Passwords(Argon2Cost(memory_kib=16, passes=1, lanes=1), 1).hash(user.password)
    change_user(rt, user, password_hash=old)
    api.login(user, WRONG).fails(401, "auth.credentials_failed")
    assert column_of(rt, user, "password_hash") == old
    api.login(user).ok()
    renewed = column_of(rt, user, "password_hash")
    assert renewed != old
    assert renewed.startswith("$argon2id$v=19$m=8,t=1,p=1$")
    api.login(user).ok()
    assert column_of(rt, user, "password_hash") == renewed


@pytest.mark.both_databases
def test_parallel_logins_with_a_hash_of_old_parameters_all_succeed(rt, app, user):
    """Each writes the new hash; on PostgreSQL none may end in a deadlock."""
    old = Passwords(Argon2Cost(memory_kib=16, passes=1, lanes=1), 1).hash(user.password)
    clients = [ApiClient(app) for _ in range(4)]
    for _ in range(10):
        change_user(rt, user, password_hash=old)
        for answer in run_concurrently([partial(client.login, user) for client in clients]):
            answer.ok()
        assert column_of(rt, user, "password_hash").startswith("$argon2id$v=19$m=8,t=1,p=1$")


def test_a_renewed_hash_ends_no_session(rt, signed_in, user):
    old = Passwords(Argon2Cost(memory_kib=16, passes=1, lanes=1), 1).hash(user.password)
    change_user(rt, user, password_hash=old)
    other = signed_in.stranger()
    other.login(user).ok()
    signed_in.me().ok()


def test_a_hash_is_not_renewed_for_a_refused_account(rt, api, user):
    old = Passwords(Argon2Cost(memory_kib=16, passes=1, lanes=1), 1).hash(user.password)
    change_user(rt, user, password_hash=old, status="disabled")
    api.login(user).fails(403, "auth.account_disabled")
    assert column_of(rt, user, "password_hash") == old


def test_the_default_parameters_are_those_of_the_decision(make_app):
    app = make_app(argon2=Argon2Cost())
    user = make_user(app.extensions["gatehouse"])
    stored = column_of(app.extensions["gatehouse"], user, "password_hash")
    assert stored.startswith("$argon2id$v=19$m=19456,t=2,p=1$")
    ApiClient(app).login(user).ok()


def test_a_damaged_hash_never_lets_anybody_in(rt, api, user):
    for damaged in ("", "plain text", "$argon2id$v=19$m=8,t=1,p=1$broken", user.password):
        change_user(rt, user, password_hash=damaged)
        api.login(user).fails(401, "auth.credentials_failed")


# --- time --------------------------------------------------------------------------------------


def test_every_outcome_takes_the_same_least_time(rt, api, user, clock):
    disabled = make_user(rt, status="disabled")
    for outcome, attempt in {
        "success": lambda: api.login(user),
        "wrong": lambda: api.login(user, WRONG),
        "unknown": lambda: api.login("nobody", WRONG),
        "disabled": lambda: api.login(disabled),
        "malformed": lambda: api.post("/auth/login", b"{"),
    }.items():
        clock.slept.clear()
        attempt()
        [slept] = clock.slept
        assert 0.35 <= slept <= 0.475, outcome


def test_the_least_time_is_not_always_the_same(api, user, clock):
    for _ in range(5):
        api.login("nobody", WRONG)
        api.login(user).ok()
    assert len(set(clock.slept)) > 1


def test_strangers_cost_a_hash_too(rt, api, user, monkeypatch):
    checked = []
    real = rt.passwords._check
    monkeypatch.setattr(
        rt.passwords,
        "_check",
        lambda password, stored, *rest: checked.append(stored) or real(password, stored, *rest),
    )
    api.login("nobody", WRONG)
    api.login(make_user(rt, password=None), WRONG)
    assert checked == [None, None]


def test_login_does_not_read_the_users_other_sessions(rt, api, user):
    """Its cost must not grow with the live sessions."""
    for _ in range(5):
        api.login(user).ok()
    statements = []
    sa.event.listen(rt.database.engine, "before_cursor_execute", lambda *a: statements.append(a[2]))
    api.login(user).ok()
    others = ("FROM login_sessions \nJOIN", "WHERE login_sessions.user_id", "UPDATE login_sessions")
    reading = [s for s in statements if any(part in s for part in others)]
    assert reading == []
