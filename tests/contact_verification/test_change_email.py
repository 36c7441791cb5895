"""POST /auth/email/change and /auth/email/change/resend."""

from contextlib import contextmanager
from datetime import timedelta
from functools import partial

import pytest

from app.contact_verification import service
from app.contact_verification.errors import NoPendingChange
from app.contact_verification.models import ContactToken
from app.core.access import COMMAND_LINE, AccountDisabled, TokenInvalid
from app.core.client import Client
from app.sessions import revocation
from app.sessions import service as sessions
from app.store.database import Database
from app.store.limits import RateLimits
from app.user_admin import credentials
from app.user_admin import service as accounts
from app.users.models import Status, User
from tests.support.api import ApiClient
from tests.support.challenge import give_totp
from tests.support.factories import (
    audit_rows,
    change_user,
    column_of,
    configure,
    count,
    make_user,
)
from tests.support.races import run_concurrently

NEW = "new@example.com"
OTHER = "other@example.com"


def addressee(message):
    [address] = message["To"].addresses
    return address.addr_spec


def change(client, new=NEW, **options):
    return client.post("/auth/email/change", {"new_email": new}, **options)


def resend(client, **options):
    return client.post("/auth/email/change/resend", **options)


def outcome(api, link):
    return api.get(link).headers["Location"].partition("contact_verification=")[2]


@pytest.mark.both_databases
def test_a_change_is_pending_until_its_link_is_followed(signed_in, user, mailbox):
    me = signed_in.me().ok()
    answered = change(signed_in, " New@Example.COM ").ok()
    expected = {name: value for name, value in me.items() if name in answered}
    assert answered == expected | {"pending_email": NEW}
    assert answered["email"] == user.email
    assert set(me) - set(answered) == {"access_token_expires_at", "preferences"}
    message = mailbox.only()
    assert addressee(message) == NEW
    link = mailbox.link(message)
    assert outcome(signed_in, link) == "email-changed&email=new%40example.com"
    assert signed_in.me().ok()["email"] == NEW
    assert addressee(mailbox.only()) == user.email


def test_the_old_address_signs_in_meanwhile(signed_in, user):
    change(signed_in).ok()
    signed_in.stranger().login(user.email, user.password).ok()
    signed_in.stranger().login(NEW, user.password).fails(401, "auth.credentials_failed")


def test_the_tokens_life_is_configured(rt, signed_in, clock):
    configure(rt, auth_contact_change_ttl_secs=120)
    change(signed_in).ok()
    with rt.transaction() as session:
        token = session.query(ContactToken).one()
    assert token.expires_at == clock.now() + timedelta(seconds=120)
    assert (token.purpose, token.address) == ("contact_change", NEW)


def test_a_request_is_audited(rt, signed_in, user):
    change(signed_in, headers={"User-Agent": "Firefox"}).ok()
    [entry] = audit_rows(rt, "user_request_email_change")
    assert (entry.user_id, entry.entity_type, entry.entity_id) == (user.id, "user", user.id)
    assert (entry.entity_name, entry.user_agent) == (user.username, "Firefox")
    assert NEW in entry.details


def test_a_request_moves_updated_at(signed_in, clock):
    before = signed_in.me().ok()["updated_at"]
    clock.advance(minutes=1)
    assert change(signed_in).ok()["updated_at"] > before


def test_an_international_domain_is_kept_in_punycode(signed_in):
    assert change(signed_in, "a@bücher.example").ok()["pending_email"] == "a@xn--bcher-kva.example"


@pytest.mark.both_databases
def test_another_address_takes_its_place_at_once(rt, signed_in, user, mailbox):
    change(signed_in).ok()
    first = mailbox.link(mailbox.only())
    assert change(signed_in, OTHER).ok()["pending_email"] == OTHER
    message = mailbox.only()
    assert addressee(message) == OTHER
    assert outcome(signed_in, first) == "invalid"
    assert outcome(signed_in, mailbox.link(message)).startswith("email-changed")
    assert signed_in.me().ok()["email"] == OTHER
    other = signed_in.stranger()
    other.login(make_user(rt)).ok()
    change(other).ok()  # what is no longer pending is free


def test_the_same_address_again_waits_for_the_cooldown(signed_in, mailbox, clock):
    change(signed_in).ok()
    first = mailbox.link(mailbox.only())
    clock.advance(seconds=59.5)
    answer = change(signed_in, NEW.upper()).fails(429, "rate_limited")
    assert answer.retry_after == 1
    assert answer.json["msg"] == "Too many requests. Try again in 1 s."
    assert mailbox.read() == []
    clock.advance(seconds=0.5)
    change(signed_in).ok()
    second = mailbox.link(mailbox.only())
    assert outcome(signed_in, first) == "invalid"
    assert outcome(signed_in, second).startswith("email-changed")


def test_the_wait_is_told(rt, signed_in, clock):
    configure(rt, auth_contact_verification_resend_cooldown_secs=600)
    change(signed_in).ok()
    assert change(signed_in).fails(429, "rate_limited").retry_after == 600
    clock.advance(seconds=100)
    assert change(signed_in).fails(429, "rate_limited").retry_after == 500


def test_a_refused_repetition_leaves_the_first_link_alone(signed_in, mailbox):
    change(signed_in).ok()
    change(signed_in).fails(429, "rate_limited")
    assert outcome(signed_in, mailbox.link(mailbox.only())).startswith("email-changed")


# --- refusals in their order -------------------------------------------------------------------


def test_an_invalid_address_is_a_bad_request(rt, signed_in, user):
    change_user(rt, user, activated_at=None)
    for new in ("", "nobody", "a@b.example\r\nBcc: c"):
        change(signed_in, new).fails(400, "bad_request")


def test_the_new_address_is_needed(signed_in):
    for body in ({}, {"new_email": None}, {"new_email": 1}, {"email": NEW}):
        answer = signed_in.post("/auth/email/change", body).fails(400, "bad_request")
        assert "new_email" in answer.json["msg"]


def test_a_disabled_account_is_refused(rt, signed_in, user):
    change_user(rt, user, status="disabled", pending_email=NEW)
    change(signed_in).fails(403, "auth.account_disabled")
    resend(signed_in).fails(403, "auth.account_disabled")


def test_an_account_that_is_not_activated_is_refused_before_the_address_is_looked_at(
    rt, signed_in, user
):
    change_user(rt, user, activated_at=None)
    change(signed_in, user.email).fails(403, "auth.pending_activation")


def test_an_activated_account_need_not_have_proven_its_address(rt, signed_in, user):
    change_user(rt, user, email_verified_at=None)
    change(signed_in).ok()


def test_the_own_address_is_no_change(rt, signed_in, user):
    configure(rt, auth_local_email_blocklist=["example.com"])
    change(signed_in, user.email.upper()).fails(400, "bad_request")


def test_the_address_policy_comes_before_what_is_taken(rt, signed_in):
    make_user(rt, email="root@blocked.example")
    make_user(rt, email="taken@elsewhere.example")
    configure(
        rt,
        auth_local_email_allowlist=["allowed.example", "blocked.example"],
        auth_local_email_blocklist=["blocked.example"],
    )
    change(signed_in, "root@blocked.example").fails(400, "auth.email_blocked")
    change(signed_in, "taken@elsewhere.example").fails(400, "auth.email_not_allowlisted")
    change(signed_in, "new@allowed.example").ok()


@pytest.mark.both_databases
@pytest.mark.parametrize("column", ["email", "pending_email"])
def test_an_address_of_somebody_else_is_taken(rt, signed_in, user, mailbox, column):
    change_user(rt, make_user(rt), **{column: NEW})
    change(signed_in, NEW.upper()).fails(400, "auth.email_exists")
    assert column_of(rt, user, "pending_email") is None
    assert count(rt, ContactToken) == 0
    assert mailbox.read() == []


def test_a_signed_in_account_is_needed(api):
    change(api).fails(401, "auth.token_missing")
    resend(api).fails(401, "auth.token_missing")


def test_it_works_while_passwords_are_off(rt, signed_in):
    configure(rt, auth_password_login_enabled=False)
    change(signed_in).ok()


# --- resend ------------------------------------------------------------------------------------


@pytest.mark.both_databases
def test_the_mail_is_sent_again_after_the_cooldown(rt, signed_in, user, mailbox, clock):
    change(signed_in).ok()
    first = mailbox.link(mailbox.only())
    clock.advance(seconds=59)
    silent = resend(signed_in)
    silent.ok()
    assert mailbox.read() == []
    assert audit_rows(rt, "user_resend_email_change") == []
    clock.advance(seconds=1)
    sent = resend(signed_in)
    assert (sent.status, sent.body) == (silent.status, silent.body)
    message = mailbox.only()
    assert addressee(message) == NEW
    [entry] = audit_rows(rt, "user_resend_email_change")
    assert (entry.user_id, entry.entity_id) == (user.id, user.id)
    assert outcome(signed_in, first) == "invalid"
    assert outcome(signed_in, mailbox.link(message)).startswith("email-changed")


def test_an_expired_link_can_be_replaced(rt, signed_in, mailbox, clock):
    change(signed_in).ok()
    expired = mailbox.link(mailbox.only())
    clock.advance(hours=24)
    signed_in.refresh().ok()
    resend(signed_in).ok()
    fresh = mailbox.link(mailbox.only())
    assert outcome(signed_in, expired) == "invalid"
    assert outcome(signed_in, fresh).startswith("email-changed")


def test_without_a_pending_change_there_is_nothing_to_send(rt, signed_in, user, mailbox):
    change_user(rt, user, activated_at=None)
    resend(signed_in).fails(400, "bad_request")
    assert mailbox.read() == []


def test_an_account_that_is_not_activated_gets_nothing(rt, signed_in, user, mailbox):
    change_user(rt, user, activated_at=None, pending_email=NEW)
    configure(rt, auth_local_email_blocklist=["example.com"])
    resend(signed_in).fails(403, "auth.pending_activation")
    assert mailbox.read() == []


def test_only_the_blocklist_counts(rt, signed_in, user, mailbox):
    change_user(rt, user, pending_email=NEW)
    configure(rt, auth_local_email_allowlist=["elsewhere.example"])
    resend(signed_in).ok()
    mailbox.only()
    configure(rt, auth_local_email_blocklist=["example.com"])
    resend(signed_in).fails(400, "auth.email_blocked")
    assert mailbox.read() == []


def test_an_address_taken_meanwhile_gets_no_mail(rt, signed_in, user, mailbox):
    change_user(rt, user, pending_email=NEW)
    change_user(rt, make_user(rt), email=NEW)  # behind the back of everything that prevents it
    resend(signed_in).fails(400, "auth.email_exists")
    assert mailbox.read() == []


def test_a_resend_takes_its_time(signed_in, clock):
    resend(signed_in).fails(400, "bad_request")
    assert 0.35 <= clock.slept[-1] <= 0.475


# --- the service is no mail cannon -------------------------------------------------------------


def test_an_account_has_ten_mails_sent_and_then_one_every_six_minutes(rt, signed_in, user, clock):
    for number in range(10):
        change(signed_in, f"victim{number}@example.com").ok()
    answer = change(signed_in, "victim10@example.com").fails(429, "rate_limited")
    assert answer.retry_after == 360
    assert column_of(rt, user, "pending_email") == "victim9@example.com"
    assert len(audit_rows(rt, "user_request_email_change")) == 10
    clock.advance(seconds=359)
    change(signed_in, "victim10@example.com").fails(429, "rate_limited")
    resend(signed_in).fails(429, "rate_limited")
    clock.advance(seconds=1)
    resend(signed_in).ok()
    change(signed_in, "victim10@example.com").fails(429, "rate_limited")


def test_refusals_do_not_count(rt, signed_in):
    taken = make_user(rt).email
    change(signed_in).ok()
    for _ in range(12):
        change(signed_in).fails(429, "rate_limited")
        change(signed_in, taken).fails(400, "auth.email_exists")
        resend(signed_in).ok()
    for number in range(9):
        change(signed_in, f"new{number}@example.com").ok()


def test_nobody_waits_for_the_count(rt, signed_in, user, clock, monkeypatch):
    """It is in Redis, which may be slow; a transaction would keep every other writer waiting."""
    is_open, counted = [False], []
    transaction, take = Database.transaction, RateLimits.take

    @contextmanager
    def watched_transaction(self):
        with transaction(self) as session:
            is_open[0] = True
            yield session
            is_open[0] = False

    def watched_take(self, name, *arguments, **options):
        counted.append((name, is_open[0]))
        take(self, name, *arguments, **options)

    monkeypatch.setattr(Database, "transaction", watched_transaction)
    monkeypatch.setattr(RateLimits, "take", watched_take)
    change(signed_in).ok()
    clock.advance(minutes=1)
    resend(signed_in).ok()
    assert counted.count(("change-mails", False)) == 2
    assert not any(was_open for _, was_open in counted)


def test_all_accounts_together_cannot_write_to_one_address_without_end(
    rt, signed_in, clock, mailbox
):
    """Whoever asks for another address in between gives the first one free again at once."""
    for _ in range(10):
        client = signed_in.stranger()
        client.login(make_user(rt)).ok()
        change(client).ok()
        change(client, f"{client.me().ok()['username']}@elsewhere.example").ok()
    answer = change(signed_in).fails(429, "rate_limited")
    assert answer.retry_after == 360
    change(signed_in, OTHER).ok()
    clock.advance(seconds=360)
    change(signed_in).ok()
    resend(signed_in).ok()  # by then its own pause has not passed
    assert [addressee(message) for message in mailbox.read()].count(NEW) == 11
    clock.advance(seconds=120)
    resend(signed_in).fails(429, "rate_limited")


def test_a_load_test_is_not_limited(make_app):
    app = make_app(rate_limits=False)
    rt = app.extensions["gatehouse"]
    make_user(rt, username="root", role="admin")
    client = signed_in_client(app, make_user(rt))
    for number in range(12):
        change(client, f"a{number}@example.com").ok()


def signed_in_client(app, user):
    client = ApiClient(app)
    client.login(user).ok()
    return client


# --- what happens meanwhile --------------------------------------------------------------------

MEANWHILE = {
    "session revoked": (
        lambda rt, _, session_id: revocation.revoke_any(rt, COMMAND_LINE, session_id),
        TokenInvalid,
    ),
    "deleted": (lambda rt, user, _: accounts.delete(rt, COMMAND_LINE, user), TokenInvalid),
    "disabled": (
        lambda rt, user, _: accounts.update(rt, COMMAND_LINE, user, status=Status.DISABLED),
        AccountDisabled,
    ),
}


@pytest.mark.parametrize("event", MEANWHILE)
@pytest.mark.parametrize(
    "late",
    [partial(service.request_change, new_email=NEW), service.resend_change],
    ids=["change", "resend"],
)
def test_a_request_overtaken_by_an_operator_is_refused(rt, signed_in, user, mailbox, event, late):
    """The access check was a moment ago."""
    change_user(rt, user, pending_email=OTHER)
    stale = sessions.authenticate(rt, signed_in.access_token)
    act, error = MEANWHILE[event]
    act(rt, user.username, stale.session_id)
    with pytest.raises(error):
        late(rt, stale, client=Client(), browser="x")
    assert {mail["Subject"] for mail in mailbox.read()} <= {"Gatehouse: security notice"}
    assert column_of(rt, user, "pending_email") != NEW


def test_a_resend_overtaken_by_the_confirmation_has_nothing_to_send(rt, signed_in, user, mailbox):
    change(signed_in).ok()
    stale = sessions.authenticate(rt, signed_in.access_token)
    signed_in.get(mailbox.link(mailbox.only()))
    mailbox.only()
    with pytest.raises(NoPendingChange):
        service.resend_change(rt, stale, client=Client(), browser="x")
    assert mailbox.read() == []


def test_a_resend_overtaken_by_another_change_leaves_the_mail_to_it(rt, signed_in, user, mailbox):
    change(signed_in).ok()
    stale = sessions.authenticate(rt, signed_in.access_token)
    change(signed_in, OTHER).ok()
    assert len(mailbox.read()) == 2
    service.resend_change(rt, stale, client=Client(), browser="x")
    assert mailbox.read() == []


# --- races -------------------------------------------------------------------------------------


@pytest.mark.both_databases
def test_of_sixteen_requests_at_once_one_is_taken(rt, signed_in, mailbox):
    answers = run_concurrently([partial(change, signed_in.twin()) for _ in range(16)])
    assert sorted(answer.status for answer in answers) == [200] + [429] * 15
    mailbox.only()


@pytest.mark.both_databases
def test_of_nine_resends_at_once_one_sends(rt, signed_in, mailbox, clock):
    """Nine and the change are what an account may ask for at once: each may be counted."""
    change(signed_in).ok()
    mailbox.only()
    clock.advance(minutes=1)
    answers = run_concurrently([partial(resend, signed_in.twin()) for _ in range(9)])
    assert {(answer.status, answer.body) for answer in answers} == {(200, answers[0].body)}
    mailbox.only()
    assert len(audit_rows(rt, "user_resend_email_change")) == 1


@pytest.mark.both_databases
def test_one_address_is_pending_for_one_account(app, rt, mailbox):
    make_user(rt, username="root", role="admin")
    clients = [signed_in_client(app, make_user(rt)) for _ in range(10)]
    answers = run_concurrently(
        [partial(change, c, NEW.upper() if n % 2 else NEW) for n, c in enumerate(clients)]
    )
    assert sorted(answer.status for answer in answers) == [200] + [400] * 9
    for answer in answers:
        if answer.status == 400:
            answer.fails(400, "auth.email_exists")
    assert count(rt, User, User.pending_email == NEW) == 1
    mailbox.only()


@pytest.mark.both_databases
def test_a_click_and_another_change_at_once(rt, signed_in, user, mailbox):
    """Either the change is through and the next one pending, or the link is worth nothing."""
    for number in range(4):
        old, wanted = signed_in.me().ok()["email"], f"wanted{number}@example.com"
        first = f"first{number}@example.com"
        change(signed_in, first).ok()
        # What the last round caused may arrive in the same moment.
        [asked] = [mail for mail in mailbox.read() if mail["To"] == first]
        link = mailbox.link(asked)
        clicker, changer = signed_in.twin(), signed_in.twin()
        [clicked, changed] = run_concurrently(
            [partial(outcome, clicker, link), partial(change, changer, wanted)]
        )
        changed.ok()
        me = signed_in.me().ok()
        if clicked == "invalid":
            assert (me["email"], me["pending_email"]) == (old, wanted)
        else:
            assert (me["email"], me["pending_email"]) == (first, wanted)


def replays_a_refresh_token(rt, session, user):
    copy = session.twin()
    session.refresh().ok()
    copy.refresh().fails(401, "auth.refresh_token_reuse_detected")


def is_shut_out(rt, session, user):
    owner = session.stranger()
    owner.login(user).ok()
    owner.delete("/auth/sessions/others").ok()


def loses_this_session(rt, session, user):
    owner = session.stranger()
    owner.login(user).ok()
    [stolen] = [s for s in owner.get("/auth/sessions").ok() if not s["is_current"]]
    owner.delete(f"/auth/sessions/{stolen['id']}").ok()


def loses_this_session_to_an_operator(rt, session, user):
    [stolen] = session.get("/auth/sessions").ok()
    revocation.revoke_any(rt, COMMAND_LINE, stolen["id"])


def loses_its_sessions(rt, session, user):
    accounts.revoke_sessions(rt, COMMAND_LINE, user.username)


def is_disabled_for_a_while(rt, session, user):
    for status in (Status.DISABLED, Status.ACTIVE):
        accounts.update(rt, COMMAND_LINE, user.username, status=status)


def loses_its_factors(rt, session, user):
    give_totp(rt, user)
    credentials.reset_mfa(rt, COMMAND_LINE, user.username)


@pytest.mark.parametrize(
    "happens",
    [
        replays_a_refresh_token,
        is_shut_out,
        loses_this_session,
        loses_this_session_to_an_operator,
        loses_its_sessions,
        is_disabled_for_a_while,
        loses_its_factors,
    ],
)
def test_whoever_is_shut_out_does_not_come_back_by_a_new_address(
    rt, signed_in, user, mailbox, happens
):
    """The link needs no session, so a stolen one could ask for it and be ended too late."""
    change(signed_in).ok()
    link = mailbox.link(mailbox.only())
    happens(rt, signed_in, user)
    signed_in.me().fails(401, "auth.token_invalid")
    assert outcome(signed_in, link) == "invalid"
    kept = [column_of(rt, user, name) for name in ("email", "pending_email")]
    assert kept == [user.email, None]


def test_ending_ones_own_session_drops_no_change_of_address(rt, signed_in, user, mailbox):
    change(signed_in).ok()
    link = mailbox.link(mailbox.only())
    signed_in.post("/auth/logout").ok()
    assert outcome(signed_in, link).startswith("email-changed")


def confirm_own(client, **options):
    return client.post("/auth/email/confirmation/send", **options)


@pytest.mark.both_databases
def test_an_address_that_was_never_confirmed_is_confirmed_later(rt, signed_in, user, mailbox):
    confirm_own(signed_in).fails(400, "bad_request")
    change_user(rt, user, email_verified_at=None, proven_at=None)
    confirm_own(signed_in).ok()
    message = mailbox.only()
    assert addressee(message) == user.email
    confirm_own(signed_in).fails(429, "rate_limited")
    assert mailbox.read() == []
    assert outcome(signed_in, mailbox.link(message)) == "register-activated"
    assert signed_in.me().ok()["email_verified"] is True
    # It was opened where it was asked for.
    assert column_of(rt, user, "proven_at") is not None
    [entry] = audit_rows(rt, "user_resend_registration")
    assert entry.user_id == user.id


def test_a_blocked_address_is_not_confirmed(rt, signed_in, user, mailbox):
    change_user(rt, user, email_verified_at=None)
    configure(rt, auth_local_email_blocklist=["example.com"])
    confirm_own(signed_in).fails(400, "auth.email_blocked")
    assert mailbox.read() == []


def test_mails_of_confirmation_are_counted(rt, signed_in, user, mailbox, clock):
    change_user(rt, user, email_verified_at=None)
    sent = 0
    while confirm_own(signed_in).status == 200:
        sent += len(mailbox.read())
        clock.advance(seconds=61)
    assert 0 < sent < 100
    assert mailbox.read() == []
    confirm_own(signed_in.stranger()).fails(401, "auth.token_missing")
