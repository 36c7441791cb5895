"""POST /auth/password/reset/confirm."""

from datetime import timedelta

import pytest
import sqlalchemy as sa

from app.contact_verification.models import ContactToken, LinkPurpose
from app.core.access import COMMAND_LINE, TokenInvalid
from app.passwords import service
from app.sessions import service as sessions
from app.user_admin import service as accounts
from app.users.models import Status, User
from tests.support.api import ORIGIN
from tests.support.challenge import give_totp, verify
from tests.support.external import add_provider, link, links
from tests.support.factories import (
    audit_rows,
    change_user,
    column_of,
    configure,
    count,
    delete_user,
    issue_token,
    make_user,
)
from tests.support.mailbox import text_of
from tests.support.passkeys import Authenticator, log_in, register
from tests.support.passwords import NEW, change, change_late, confirm
from tests.support.races import run_concurrently

INVALID = 400, "auth.contact_verification_invalid"
MANY = 16


def row_of(rt, user):
    with rt.reading() as connection:
        statement = sa.select(*User.__table__.columns).where(User.id == user.id)
        return connection.execute(statement).one()._asdict()


# --- effects -----------------------------------------------------------------------------------


@pytest.mark.both_databases
def test_the_new_password_is_the_only_one(api, user, mailed):
    answer = confirm(api, mailed(user))
    assert set(answer.ok()) == {"message"}
    api.login(user).fails(401, "auth.credentials_failed")
    assert api.login(user, NEW).ok()["status"] == "authenticated"


def test_every_session_ends_at_once_and_no_cookie_is_touched(rt, api, signed_in, user, mailed):
    configure(rt, auth_new_browser_notice=False)
    phone, bearer = signed_in.stranger(), signed_in.bearer()
    phone.login(user).ok()
    answer = confirm(signed_in, mailed(user))
    answer.ok()
    assert answer.set_cookies == {}
    for old in (phone, bearer, signed_in):
        old.me().fails(401, "auth.token_invalid")
    for old in (phone, signed_in):
        old.refresh().fails(401, "auth.token_invalid")
    stranger = api.stranger()
    stranger.login(user, NEW).ok()
    assert len(stranger.get("/auth/sessions").ok()) == 1


@pytest.mark.both_databases
def test_who_waited_in_an_account_for_the_owner_of_its_address_is_shut_out(
    rt, api, signed_in, user, mailed, mailbox
):
    """Somebody made the account with an address that is not theirs, and opened more ways in."""
    configure(rt, public_site_url=[ORIGIN])
    squatter = Authenticator()
    register(signed_in, squatter).ok()
    mailbox.read()
    link(rt, user, add_provider(rt))
    give_totp(rt, user)
    change_user(rt, user, proven_at=None)
    confirm(api, mailed(user)).ok()
    assert api.stranger().login(user, NEW).ok()["status"] == "authenticated"
    log_in(api.stranger(), squatter).fails(401, "auth.credentials_failed")
    assert links(rt) == []
    [entry] = audit_rows(rt, "user_confirm_password_reset")
    assert entry.details == '{"removed_ways_in": 3}'


def test_passkeys_and_links_of_a_verified_account_stay(rt, api, signed_in, user, mailed, mailbox):
    configure(rt, public_site_url=[ORIGIN])
    own = Authenticator()
    register(signed_in, own).ok()
    mailbox.read()
    link(rt, user, add_provider(rt))
    confirm(api, mailed(user)).ok()
    log_in(api.stranger(), own).ok()
    assert len(links(rt)) == 1


@pytest.mark.parametrize("is_proven", [True, False])
def test_second_factors_and_recovery_codes_stay(rt, api, user, mailed, clock, is_proven):
    enabled = give_totp(rt, user, clock)
    if not is_proven:
        change_user(rt, user, email_verified_at=None)
    confirm(api, mailed(user)).ok()
    codes = {"totp": enabled.app.code(), "recovery_code": enabled.recovery_codes[0]}
    for method, code in codes.items():
        answer = api.stranger().login(user, NEW)
        data = answer.ok()
        assert (data["status"], answer.set_cookies) == ("mfa_required", {})
        assert set(data["methods"]) == set(codes)
        passed = verify(api.stranger(), data["flow_token"], code, method).ok()
        assert passed["status"] == "authenticated"


def test_nothing_else_about_the_account_changes(rt, api, user, mailed, clock):
    change_user(rt, user, preferences='{"theme_mode": "dark"}', storage_used=7, role="admin")
    token, before = mailed(user), row_of(rt, user)
    clock.advance(minutes=5)
    confirm(api, token).ok()
    after = row_of(rt, user)
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"password_hash", "session_version", "updated_at"}
    assert after["session_version"] == before["session_version"] + 1
    assert after["updated_at"] == clock.now()


def test_a_forced_change_is_done_with(rt, api, user, mailed):
    change_user(rt, user, must_change_password=True)
    confirm(api, mailed(user)).ok()
    assert api.login(user, NEW).ok()["status"] == "authenticated"


def test_reading_the_mail_proves_the_address(rt, api, user, mailed, clock):
    change_user(rt, user, email_verified_at=None, proven_at=None)
    confirm(api, mailed(user)).ok()
    for column in ("email_verified_at", "proven_at"):
        assert column_of(rt, user, column) == clock.now()


def test_an_address_proven_before_keeps_its_time(rt, api, user, mailed, clock):
    proven = column_of(rt, user, "email_verified_at")
    clock.advance(minutes=1)
    confirm(api, mailed(user)).ok()
    assert column_of(rt, user, "email_verified_at") == proven


def test_an_account_without_a_usable_password_gets_one(rt, api, user, mailed):
    change_user(rt, user, password_hash=None)
    confirm(api, mailed(user)).ok()
    api.login(user, NEW).ok()


def test_the_owner_is_told_by_mail(api, user, mailed, mailbox):
    confirm(api, mailed(user)).ok()
    notice = mailbox.only()
    assert notice["To"] == user.email
    assert user.username in text_of(notice)
    assert NEW not in notice.as_string()


def test_the_owner_is_told_to_look_at_what_a_reset_leaves(api, user, mailed, mailbox):
    """Who had the password may have added ways in; with an activated account it may be anybody."""
    confirm(api, mailed(user)).ok()
    text = " ".join(text_of(mailbox.only()).split())
    assert "look through your passkeys, your authenticator app and the accounts elsewhere" in text
    assert "remove what you did not add yourself" in text


def test_it_is_recorded_without_secrets(rt, api, user, mailed):
    token = mailed(user)
    confirm(api, token, headers={"User-Agent": "Firefox"}).ok()
    [entry] = audit_rows(rt, "user_confirm_password_reset")
    assert (entry.user_id, entry.entity_id) == (user.id, user.id)
    assert (entry.entity_type, entry.entity_name) == ("user", user.username)
    assert (entry.ip_address, entry.user_agent) == ("127.0.0.1", "Firefox")
    assert token not in str(entry)
    assert NEW not in str(entry)


def test_nobody_elses_session_ends(rt, api, user, mailed):
    other = api.stranger()
    other.login(make_user(rt)).ok()
    confirm(api, mailed(user)).ok()
    other.me().ok()


def test_a_password_within_the_rule_is_taken_as_it_is(api, user, mailed):
    confirm(api, mailed(user), " padded ").ok()
    api.login(user, " padded ").ok()
    api.login(user, "padded").fails(401, "auth.credentials_failed")


def test_the_old_password_may_be_set_again(api, signed_in, user, mailed):
    confirm(api, mailed(user), user.password).ok()
    signed_in.me().fails(401, "auth.token_invalid")
    api.login(user).ok()


def test_a_reset_does_not_forgive_failed_logins(api, user, mailed, clock):
    for _ in range(10):
        api.login(user, "wrong password").fails(401, "auth.credentials_failed")
    confirm(api, mailed(user)).ok()
    api.login(user, NEW).fails(429, "rate_limited")
    clock.advance(minutes=5)
    api.login(user, NEW).ok()


@pytest.mark.both_databases
def test_a_change_of_address_that_was_asked_for_is_dropped(rt, api, user, mailed):
    change_user(rt, user, pending_email="next@example.com")
    other = issue_token(rt, user, LinkPurpose.CONTACT_CHANGE, "next@example.com")
    confirm(api, mailed(user)).ok()
    assert column_of(rt, user, "pending_email") is None
    assert count(rt, ContactToken) == 0
    path = f"/auth/contact-verification/confirm?token={other}"
    assert "contact_verification=invalid" in api.get(path).headers["Location"]


# --- refusals ----------------------------------------------------------------------------------


def test_it_works_once(api, user, mailed):
    token = mailed(user)
    confirm(api, token).ok()
    confirm(api, token, "yet another password").fails(*INVALID)
    api.login(user, NEW).ok()


def test_an_unknown_token_is_invalid(api, user, mailed):
    token = mailed(user)
    altered = [f" {token}", f"{token} ", f"{token}\n", token.upper()]
    for unknown in ("", " ", "x", "cv_", "' OR 1=1 --", "é" * 50, *altered):
        answer = confirm(api, unknown)
        assert (answer.status, answer.code) == INVALID, unknown
    confirm(api, token).ok()


def test_a_token_for_something_else_is_invalid_and_stays(rt, api, user):
    for purpose in (LinkPurpose.REGISTER_ACTIVATION, LinkPurpose.CONTACT_CHANGE):
        confirm(api, issue_token(rt, user, purpose)).fails(*INVALID)
    assert count(rt, ContactToken) == 2


def test_a_reset_token_confirms_no_address(api, user, mailed):
    token = mailed(user)
    answer = api.get(f"/auth/contact-verification/confirm?token={token}")
    assert "contact_verification=invalid" in answer.headers["Location"]
    confirm(api, token).ok()


def test_the_last_moment_is_in_time_and_the_next_is_not(rt, api, user, mailed, clock):
    token = mailed(user)
    clock.advance(seconds=3600)
    confirm(api, token).fails(410, "auth.contact_verification_expired")
    confirm(api, token).fails(410, "auth.contact_verification_expired")
    token = mailed(user)
    clock.advance(seconds=3599.9)
    confirm(api, token).ok()


def test_a_password_outside_the_rule_keeps_the_token(rt, api, user, mailed):
    token, before = mailed(user), row_of(rt, user)
    for new in ("", "1234567", "x" * 129, "x" * 4096):
        confirm(api, token, new).fails(400, "bad_request")
    assert row_of(rt, user) == before
    confirm(api, token).ok()


def test_both_fields_are_needed(api):
    for field in ("token", "new_password"):
        for value in (None, 1, "nul\x00"):
            body = {"token": "x", "new_password": NEW} | {field: value}
            answer = api.post("/auth/password/reset/confirm", body).fails(400, "bad_request")
            assert field in answer.json["msg"]


def test_the_link_of_another_address_is_invalid(rt, api, user, mailed):
    token = mailed(user)
    change_user(rt, user, email="next@example.com")
    before = row_of(rt, user)
    confirm(api, token).fails(*INVALID)
    assert row_of(rt, user) == before


def test_the_token_of_a_deleted_account_is_invalid(rt, api, user, mailed):
    token = mailed(user)
    delete_user(rt, user)
    confirm(api, token).fails(*INVALID)
    assert count(rt, ContactToken) == 0


def test_the_documented_order(rt, api, user, mailed, clock):
    """Everything is wrong; one mistake after the other is put right."""
    token = mailed(user)
    configure(rt, auth_password_login_enabled=False)
    change_user(rt, user, status="disabled", email="next@example.com")
    clock.advance(hours=1)
    confirm(api, "unknown", "short").fails(403, "auth.password_login_disabled")
    configure(rt, auth_password_login_enabled=True)
    confirm(api, "unknown", "short").fails(400, "bad_request")
    confirm(api, "unknown").fails(*INVALID)
    confirm(api, token).fails(410, "auth.contact_verification_expired")
    with rt.transaction() as session:
        later = clock.now() + timedelta(hours=1)
        session.execute(sa.update(ContactToken).values(expires_at=later))
    confirm(api, token).fails(403, "auth.account_disabled")
    change_user(rt, user, status="active")
    confirm(api, token).fails(*INVALID)
    change_user(rt, user, email=user.email)
    confirm(api, token).ok()


def test_a_bad_token_costs_no_hash(rt, api, user, mailed, monkeypatch, clock):
    token = mailed(user)
    clock.advance(hours=1)
    monkeypatch.setattr(rt.passwords, "hash", lambda _: pytest.fail("a hash"))
    confirm(api, "unknown").fails(*INVALID)
    confirm(api, token).fails(410, "auth.contact_verification_expired")


# --- what makes a link worthless ---------------------------------------------------------------


def test_a_newer_link_replaces_it(api, user, mailed, clock):
    old = mailed(user)
    clock.advance(minutes=1)
    new = mailed(user)
    confirm(api, old).fails(*INVALID)
    confirm(api, new).ok()


def test_a_change_of_the_password_voids_it(rt, signed_in, user, mailed):
    token = mailed(user)
    change_user(rt, user, pending_email="next@example.com")
    issue_token(rt, user, LinkPurpose.CONTACT_CHANGE, "next@example.com")
    change(signed_in, user.password).ok()
    confirm(signed_in, token, "yet another password").fails(*INVALID)
    assert count(rt, ContactToken) == 0
    assert column_of(rt, user, "pending_email") is None
    signed_in.me().ok()


def test_a_refused_change_of_the_password_does_not(signed_in, user, mailed):
    token = mailed(user)
    change(signed_in, "not the password").fails(401, "auth.credentials_failed")
    confirm(signed_in, token).ok()


@pytest.mark.parametrize("option", [["--password", "set by an operator"], ["--generate"]])
def test_a_password_set_by_an_operator_voids_it(line, api, user, mailed, option):
    token = mailed(user)
    line.json("users", "set-password", user.username, *option)
    confirm(api, token).fails(*INVALID)


def test_a_confirmed_change_of_address_voids_it(signed_in, user, mailed, mailbox):
    signed_in.post("/auth/email/change", {"new_email": "next@example.com"}).ok()
    confirmation = mailbox.token(mailbox.only())
    token = mailed(user)
    signed_in.get(f"/auth/contact-verification/confirm?token={confirmation}")
    assert signed_in.me().ok()["email"] == "next@example.com"
    confirm(signed_in, token).fails(*INVALID)


def test_an_activation_by_an_operator_voids_the_activation_link(rt, line, api, user):
    change_user(rt, user, activated_at=None, email_verified_at=None)
    token = issue_token(rt, user, LinkPurpose.REGISTER_ACTIVATION)
    assert line.json("users", "verify-email", user.username)["email_verified"] is True
    answer = api.get(f"/auth/contact-verification/confirm?token={token}")
    assert "contact_verification=invalid" in answer.headers["Location"]
    api.login(user).ok()


def test_an_address_verified_by_an_operator_keeps_the_other_links(rt, line, api, user, mailed):
    change_user(rt, user, email_verified_at=None)
    token = mailed(user)
    line.json("users", "verify-email", user.username)
    confirm(api, token).ok()


# --- at the same moment ------------------------------------------------------------------------


@pytest.mark.both_databases
def test_of_parallel_confirmations_exactly_one_succeeds(rt, api, user, mailed, mailbox):
    token = mailed(user)
    clients = [api.stranger() for _ in range(MANY)]
    jobs = [
        lambda client=client, new=f"new password {number}": confirm(client, token, new)
        for number, client in enumerate(clients)
    ]
    answers = run_concurrently(jobs)
    [winner] = [number for number, answer in enumerate(answers) if answer.status == 200]
    for number, answer in enumerate(answers):
        if number != winner:
            answer.fails(*INVALID)
    api.login(user, f"new password {winner}").ok()
    assert column_of(rt, user, "session_version") == 2
    assert len(audit_rows(rt, "user_confirm_password_reset")) == 1
    mailbox.only()


@pytest.mark.both_databases
@pytest.mark.parametrize("attempt", range(2))
def test_a_reset_and_a_change_at_once_leave_one_password(rt, signed_in, user, mailed, attempt):
    """Whoever comes second finds its link void or its session ended."""
    token, stranger = mailed(user), signed_in.stranger()
    reset, changed = run_concurrently(
        [
            lambda: confirm(stranger, token, "by reset, a password"),
            lambda: change(signed_in, user.password, "by change, a password"),
        ]
    )
    assert [reset.status, changed.status].count(200) == 1
    if reset.status == 200:
        assert changed.code in {"auth.token_invalid", "auth.credentials_failed"}
        stranger.login(user, "by reset, a password").ok()
    else:
        reset.fails(*INVALID)
        stranger.login(user, "by change, a password").ok()


MEANWHILE = {
    "used elsewhere": (lambda rt, user, again: again(), INVALID),
    "password set": (
        lambda rt, user, _: accounts.set_password(
            rt, COMMAND_LINE, user.username, "set by an operator"
        ),
        INVALID,
    ),
    "address changed": (
        lambda rt, user, _: change_user(rt, user, email="next@example.com"),
        INVALID,
    ),
    "account deleted": (lambda rt, user, _: delete_user(rt, user), INVALID),
    "account disabled": (
        lambda rt, user, _: accounts.update(
            rt, COMMAND_LINE, user.username, status=Status.DISABLED
        ),
        (403, "auth.account_disabled"),
    ),
}


@pytest.mark.parametrize("event", MEANWHILE)
def test_what_happens_while_the_password_is_computed_counts(
    rt, api, user, mailed, monkeypatch, event
):
    token = mailed(user)
    act, refusal = MEANWHILE[event]
    real = rt.passwords.hash

    def overtaken(password):
        monkeypatch.setattr(rt.passwords, "hash", real)
        act(rt, user, lambda: confirm(api.stranger(), token, "by somebody else").ok())
        return real(password)

    monkeypatch.setattr(rt.passwords, "hash", overtaken)
    confirm(api, token).fails(*refusal)
    api.login(user, NEW)
    assert "service_access" not in api.cookies


def test_the_end_that_comes_while_the_password_is_computed_counts(
    rt, api, user, mailed, monkeypatch, clock
):
    token, real = mailed(user), rt.passwords.hash

    def slow(password):
        clock.advance(hours=1)
        return real(password)

    monkeypatch.setattr(rt.passwords, "hash", slow)
    confirm(api, token).fails(410, "auth.contact_verification_expired")


def test_an_account_deleted_between_two_reads_is_invalid(rt, api, user, mailed, monkeypatch):
    token, real = mailed(user), service.users_queries.find_account

    def overtaken(reader, user_id):
        monkeypatch.undo()
        delete_user(rt, user)
        return real(reader, user_id)

    monkeypatch.setattr(service.users_queries, "find_account", overtaken)
    confirm(api, token).fails(*INVALID)


def test_a_change_whose_password_was_reset_meanwhile_is_refused(rt, signed_in, user, mailed):
    stale = sessions.authenticate(rt, signed_in.access_token)
    confirm(signed_in.stranger(), mailed(user), user.password).ok()
    with pytest.raises(TokenInvalid):
        change_late(rt, stale, user.password)
