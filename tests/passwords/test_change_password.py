"""PUT /auth/password."""

from functools import partial

import pytest

from app.core.access import COMMAND_LINE, TokenInvalid
from app.login.errors import CredentialsFailed
from app.passwords.service import CHANGED
from app.sessions import revocation
from app.sessions import service as sessions
from app.user_admin import service as accounts
from app.users import queries as users_queries
from app.users.models import Status
from tests.support.api import ApiClient
from tests.support.factories import (
    audit_rows,
    change_user,
    column_of,
    configure,
    make_user,
)
from tests.support.mailbox import text_of
from tests.support.passwords import NEW, change, change_late
from tests.support.races import run_concurrently

WRONG = "not the password"


@pytest.mark.both_databases
def test_a_change_gives_a_new_session(signed_in, user):
    before = signed_in.cookies
    answer = change(signed_in, user.password)
    assert answer.ok() == {"expires_in": 900}
    assert set(answer.set_cookies) == {"service_access", "service_refresh", "service_csrf"}
    assert all(before[name] != value for name, value in signed_in.cookies.items())
    signed_in.me().ok()
    signed_in.refresh().ok()
    assert len(signed_in.get("/auth/sessions").ok()) == 1


def test_only_the_new_password_works_from_now_on(signed_in, user):
    change(signed_in, user.password).ok()
    stranger = signed_in.stranger()
    stranger.login(user).fails(401, "auth.credentials_failed")
    stranger.login(user, NEW).ok()


def test_the_owner_is_told_by_mail(signed_in, user, mailbox):
    change(signed_in, "not the password").fails(401, "auth.credentials_failed")
    change(signed_in, user.password).ok()
    message = mailbox.only()
    [address] = message["To"].addresses
    assert address.addr_spec == user.email
    assert message["Subject"] == "Gatehouse: security notice"
    assert CHANGED in " ".join(text_of(message).split())


def test_every_older_session_ends_at_once(signed_in, user):
    phone, copy, bearer = signed_in.stranger(), signed_in.twin(), signed_in.bearer()
    phone.login(user).ok()
    change(signed_in, user.password).ok()
    for old in (phone, copy, bearer):
        old.me().fails(401, "auth.token_invalid")
    phone.refresh().fails(401, "auth.token_invalid")
    copy.refresh().fails(401, "auth.token_invalid")
    signed_in.me().ok()


def test_a_bearer_may_change_the_password(signed_in, user):
    answer = change(signed_in.bearer(), user.password)
    answer.ok()
    assert "service_access" in answer.set_cookies


def test_a_wrong_current_password_changes_nothing(rt, signed_in, user):
    before = column_of(rt, user, "password_hash")
    answer = change(signed_in, WRONG).fails(401, "auth.credentials_failed")
    assert answer.set_cookies == {}
    assert column_of(rt, user, "password_hash") == before
    signed_in.me().ok()
    assert audit_rows(rt, "user_change_password") == []


def test_an_account_without_a_usable_password_has_none_to_change(rt, signed_in, user):
    change_user(rt, user, password_hash=None)
    change(signed_in, "").fails(401, "auth.credentials_failed")
    change(signed_in, user.password).fails(401, "auth.credentials_failed")


def test_the_new_password_must_differ(signed_in, user):
    change(signed_in, user.password, user.password).fails(400, "bad_request")
    signed_in.me().ok()


def test_another_spelling_of_the_same_password_is_the_same(signed_in, user):
    """What looks the same is one password (NFKC), which a forced change must not take for new."""
    change(signed_in, user.password, "ﬁne words").ok()
    change(signed_in, "ﬁne words", "fine words").fails(400, "bad_request")


def test_a_new_password_outside_the_rule_is_refused(signed_in, user):
    for new in ("", "1234567", "x" * 129, "x" * 4096):
        answer = change(signed_in, user.password, new)
        assert (answer.status, answer.code) == (400, "bad_request"), new
    signed_in.stranger().login(user).ok()


def test_a_new_password_within_the_rule_is_taken_as_it_is(signed_in, user):
    old = user.password
    for new in ("x" * 8, "x" * 128, "😀" * 8, " padded "):
        change(signed_in, old, new).ok()
        signed_in.stranger().login(user, new).ok()
        old = new
    signed_in.stranger().login(user, "padded").fails(401, "auth.credentials_failed")


def test_the_rule_is_no_oracle_for_the_current_password(signed_in):
    change(signed_in, WRONG, "short").fails(401, "auth.credentials_failed")
    change(signed_in, WRONG, WRONG).fails(401, "auth.credentials_failed")


def test_it_works_while_password_login_is_off(rt, signed_in, user):
    configure(rt, auth_password_login_enabled=False)
    change(signed_in, user.password).ok()
    configure(rt, auth_password_login_enabled=True)
    signed_in.stranger().login(user, NEW).ok()


def test_a_disabled_account_cannot(rt, signed_in, user):
    change_user(rt, user, status="disabled")
    change(signed_in, user.password).fails(403, "auth.account_disabled")


def test_a_change_lifts_the_force(rt, api, user):
    change_user(rt, user, must_change_password=True)
    api.login(user).ok()
    change(api, user.password, user.password).fails(400, "bad_request")
    assert change(api, user.password).ok() == {"expires_in": 900}
    assert api.me().ok()["must_change_password"] is False
    api.get("/auth/sessions").ok()
    api.refresh().ok()
    assert api.stranger().login(user, NEW).ok()["status"] == "authenticated"


def test_guesses_at_the_current_password_count_like_failed_logins(signed_in, user):
    for _ in range(5):
        change(signed_in, WRONG).fails(401, "auth.credentials_failed")
    for _ in range(5):
        signed_in.stranger().login(user, WRONG).fails(401, "auth.credentials_failed")
    answer = change(signed_in, user.password).fails(429, "rate_limited")
    assert answer.retry_after == 300
    signed_in.stranger().login(user).fails(429, "rate_limited")
    signed_in.me().ok()


def test_a_right_password_is_not_counted_and_clears_no_guess(signed_in, user):
    """Else who knows the password could guess at the second factor without end."""
    for _ in range(9):
        change(signed_in, WRONG).fails(401, "auth.credentials_failed")
    for _ in range(3):
        change(signed_in, user.password, user.password).fails(400, "bad_request")
    change(signed_in, user.password).ok()
    signed_in.stranger().login(user, WRONG).fails(401, "auth.credentials_failed")
    signed_in.stranger().login(user, WRONG).fails(429, "rate_limited")


def test_a_change_is_audited_without_the_passwords(rt, signed_in, user):
    change(signed_in, user.password, headers={"User-Agent": "Firefox"}).ok()
    [entry] = audit_rows(rt, "user_change_password")
    assert (entry.user_id, entry.entity_type, entry.entity_id) == (user.id, "user", user.id)
    assert entry.entity_name == user.username
    assert (entry.ip_address, entry.user_agent) == ("127.0.0.1", "Firefox")
    assert NEW not in str(entry)
    assert user.password not in str(entry)


def test_a_change_moves_updated_at(signed_in, user, clock):
    before = signed_in.me().ok()["updated_at"]
    clock.advance(minutes=1)
    change(signed_in, user.password).ok()
    assert signed_in.me().ok()["updated_at"] > before


def test_nobody_elses_session_ends(rt, signed_in, user):
    other = signed_in.stranger()
    other.login(make_user(rt)).ok()
    change(signed_in, user.password).ok()
    other.me().ok()


@pytest.mark.both_databases
def test_of_parallel_changes_exactly_one_succeeds(app, rt, user):
    """Each on a session of its own; the losers' sessions have ended with the winner's change."""
    clients = [ApiClient(app) for _ in range(8)]
    for client in clients:
        client.login(user).ok()
    answers = run_concurrently(
        [
            partial(change, client, user.password, f"new password {number}")
            for number, client in enumerate(clients)
        ]
    )
    winners = [number for number, answer in enumerate(answers) if answer.status == 200]
    assert len(winners) == 1
    for number, answer in enumerate(answers):
        if number not in winners:
            answer_code = (answer.status, answer.code)
            assert answer_code in {
                (401, "auth.credentials_failed"),
                (401, "auth.token_invalid"),
            }
    ApiClient(app).login(user, f"new password {winners[0]}").ok()
    assert len(audit_rows(rt, "user_change_password")) == 1


# --- what happens while the passwords are computed ---------------------------------------------

SET_BY_OPERATOR = "set by an operator"
MEANWHILE = {
    "all sessions revoked": lambda rt, name, _: accounts.revoke_sessions(rt, COMMAND_LINE, name),
    "a change forced": lambda rt, name, _: accounts.update(
        rt, COMMAND_LINE, name, must_change_password=True
    ),
    "account disabled": lambda rt, name, _: accounts.update(
        rt, COMMAND_LINE, name, status=Status.DISABLED
    ),
    "own session revoked": lambda rt, _, session_id: revocation.revoke_any(
        rt, COMMAND_LINE, session_id
    ),
    "password set": lambda rt, name, _: accounts.set_password(
        rt, COMMAND_LINE, name, SET_BY_OPERATOR
    ),
}
WITHOUT_HASHING = [event for event in MEANWHILE if event != "password set"]


@pytest.mark.parametrize("event", MEANWHILE)
def test_a_change_overtaken_by_an_operator_is_refused_and_changes_nothing(
    rt, signed_in, user, event
):
    """The account was read when the request came in; the operator was faster than Argon2."""
    stale = sessions.authenticate(rt, signed_in.access_token)
    MEANWHILE[event](rt, user.username, stale.session_id)
    columns = ("password_hash", "must_change_password", "status", "session_version")
    before = [column_of(rt, user, name) for name in columns]
    with pytest.raises(TokenInvalid):
        change_late(rt, stale, SET_BY_OPERATOR if event == "password set" else user.password)
    assert [column_of(rt, user, name) for name in columns] == before
    assert audit_rows(rt, "user_change_password") == []
    assert sessions.list_sessions(rt, user.id, None) == []


@pytest.mark.parametrize("event", WITHOUT_HASHING)
@pytest.mark.own_application
def test_a_request_overtaken_while_it_hashes_is_answered_as_one_without_a_session(
    rt, signed_in, user, event
):
    session_id = sessions.authenticate(rt, signed_in.access_token).session_id
    real = rt.passwords._context

    class Overtaken:
        """The hashing library, during whose first new hash the operator acts."""

        def __init__(self):
            self.acted = False

        def hash(self, password):
            if not self.acted:
                self.acted = True
                MEANWHILE[event](rt, user.username, session_id)
            return real.hash(password)

        def __getattr__(self, name):
            return getattr(real, name)

    rt.passwords._context = Overtaken()
    answer = change(signed_in, user.password).fails(401, "auth.token_invalid")
    assert answer.set_cookies == {}
    assert not real.verify(NEW, column_of(rt, user, "password_hash"))
    assert audit_rows(rt, "user_change_password") == []


@pytest.mark.own_application
def test_a_change_overtaken_by_a_login_that_hashes_anew_is_refused(rt, signed_in, user):
    """The hash that was checked is not there any more, and only that one may be replaced."""
    stored = column_of(rt, user, "password_hash")
    real = rt.passwords.hash

    def overtaken(password):
        with rt.transaction() as session:
            users_queries.replace_hash(session, user.id, stored, real(user.password))
        return real(password)

    rt.passwords.hash = overtaken
    change(signed_in, user.password).fails(401, "auth.credentials_failed")
    signed_in.me().ok()
    signed_in.stranger().login(user).ok()


def test_a_forced_change_overtaken_by_a_generated_password_stays_forced(rt, api, user):
    change_user(rt, user, must_change_password=True)
    api.login(user).ok()
    stale = sessions.authenticate(rt, api.access_token)
    accounts.set_password(
        rt, COMMAND_LINE, user.username, SET_BY_OPERATOR, must_change_password=True
    )
    with pytest.raises(CredentialsFailed):
        change_late(rt, stale, user.password)
    assert column_of(rt, user, "must_change_password") is True
