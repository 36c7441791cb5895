"""POST /auth/password/reset/request."""

import pytest
import sqlalchemy as sa

from app.contact_verification.models import ContactToken
from app.core.access import COMMAND_LINE
from app.crypto.tokens import digest
from app.mail.models import OutboxMail
from app.user_admin import service as accounts
from app.users import queries as users_queries
from app.users.models import Status
from tests.support.api import ApiClient
from tests.support.factories import (
    audit_rows,
    change_user,
    configure,
    count,
    delete_user,
    make_user,
)
from tests.support.mailbox import text_of
from tests.support.passwords import confirm, request
from tests.support.races import run_concurrently

ACTION = "user_request_password_reset"
SITE = "https://files.example.com"


def test_the_account_gets_a_link_to_the_frontends_page(rt, api, user, mailbox):
    configure(rt, public_site_url=[SITE])
    request(api, user.email).ok()
    message = mailbox.only()
    assert message["To"] == user.email
    assert user.username in text_of(message)
    token = mailbox.token(message)
    assert mailbox.link(message) == f"{SITE}/reset-password?token={token}"


def test_the_link_is_a_path_while_the_sites_address_is_not_known(api, user, mailbox):
    request(api, user.email).ok()
    assert mailbox.link(mailbox.only()).startswith("/reset-password?token=cv_")


def test_the_token_has_256_bits_and_only_its_digest_is_stored(rt, mailed, user):
    token = mailed(user)
    assert len(token) == len("cv_") + 43
    with rt.reading() as connection:
        rows = connection.execute(sa.select(*ContactToken.__table__.columns)).all()
    [row] = rows
    assert (row.user_id, row.purpose, row.address) == (user.id, "password_reset", user.email)
    assert row.token_digest == digest(token)
    assert token not in str(rows)


def test_asking_changes_nothing_about_the_account(api, signed_in, user, mailbox):
    before = signed_in.me().ok()
    answer = request(api.stranger(), user.email)
    answer.ok()
    assert answer.set_cookies == {}
    assert signed_in.me().ok() == before
    api.stranger().login(user).ok()


def test_every_spelling_of_the_address_is_known(api, user, mailbox, clock):
    for spelled in (user.email.upper(), f" {user.email} ", f"\t{user.email}\n"):
        request(api, spelled).ok()
        assert mailbox.only()["To"] == user.email
        clock.advance(minutes=1)


def test_every_active_activated_account_gets_one(rt, api, mailbox):
    for columns in (
        {"must_change_password": True},
        {"verified": False},
        {"password": None},
        {"role": "admin"},
    ):
        user = make_user(rt, **columns)
        request(api, user.email).ok()
        assert [message["To"] for message in mailbox.read()] == [user.email], columns


def test_the_email_policy_does_not_apply(rt, api, user, mailbox):
    configure(rt, auth_local_email_blocklist=["example.com"])
    request(api, user.email).ok()
    mailbox.only()


# --- what the answer tells ---------------------------------------------------------------------


def test_a_closed_account_gets_none_and_the_same_answer(rt, api, user, mailbox):
    known = request(api, make_user(rt).email)
    mailbox.only()
    change_user(rt, user, status="disabled")
    answer = request(api, user.email)
    assert (answer.status, answer.body) == (known.status, known.body)
    assert mailbox.read() == []
    assert user.id not in {row.user_id for row in audit_rows(rt, ACTION)}


def test_unknown_known_and_waiting_get_the_same_answer(rt, api, user, mailbox):
    answers = [
        request(api, "nobody@example.com"),
        request(api, user.email),
        request(api, user.email),
        request(api, f"{user.username}@nowhere.example"),
    ]
    answers[0].ok()
    assert set(answers[0].data) == {"message"}
    assert len({(answer.status, answer.body) for answer in answers}) == 1
    kept = [
        {name: value for name, value in answer.headers if name != "X-Request-ID"}
        for answer in answers
    ]
    assert kept == [kept[0]] * 4
    mailbox.only()


def test_a_pending_address_is_not_the_accounts(rt, api, user, mailbox):
    change_user(rt, user, pending_email="next@example.com")
    request(api, "next@example.com").ok()
    assert mailbox.read() == []


def test_the_answer_takes_its_time_whoever_asks(make_app, clock):
    client = ApiClient(make_app(response_floor_ms=350))
    request(client, "nobody@example.com").ok()
    request(client, "nonsense").fails(400, "bad_request")
    assert len(clock.slept) == 2
    assert all(0.35 <= slept <= 0.475 for slept in clock.slept)


# --- cooldown ----------------------------------------------------------------------------------


@pytest.mark.both_databases
def test_a_second_mail_waits_for_the_cooldown(api, user, mailbox, clock):
    request(api, user.email).ok()
    first = mailbox.token(mailbox.only())
    clock.advance(seconds=59.9)
    request(api, user.email).ok()
    assert mailbox.read() == []
    clock.advance(seconds=0.1)
    request(api, user.email).ok()
    second = mailbox.token(mailbox.only())
    confirm(api, first).fails(400, "auth.contact_verification_invalid")
    confirm(api, second).ok()


def test_the_cooldown_is_the_accounts_own(rt, api, user, mailbox):
    other = make_user(rt)
    for email in (user.email, other.email, user.email):
        request(api, email).ok()
    assert [message["To"] for message in mailbox.read()] == [user.email, other.email]


def test_cooldown_and_life_come_from_the_settings(rt, api, user, mailed, clock):
    configure(rt, auth_password_reset_request_cooldown_secs=5, auth_password_reset_ttl_secs=20)
    mailed(user)
    clock.advance(seconds=5)
    token = mailed(user)
    clock.advance(seconds=19.9)
    confirm(api, token, "short").fails(400, "bad_request")
    clock.advance(seconds=0.1)
    confirm(api, token).fails(410, "auth.contact_verification_expired")


def test_a_used_token_is_no_reason_to_wait(api, user, mailed, mailbox):
    confirm(api, mailed(user)).ok()
    mailbox.read()  # the notice
    confirm(api, mailed(user), "yet another password").ok()


@pytest.mark.both_databases
def test_of_parallel_requests_one_sends_a_mail(rt, api, user, mailbox):
    clients = [api.stranger() for _ in range(16)]
    jobs = [lambda client=client: request(client, user.email) for client in clients]
    answers = run_concurrently(jobs)
    assert [answer.status for answer in answers] == [200] * 16
    assert len({answer.body for answer in answers}) == 1
    assert count(rt, OutboxMail) == count(rt, ContactToken) == 1
    confirm(api, mailbox.token(mailbox.only())).ok()


# --- refusals ----------------------------------------------------------------------------------


def test_an_invalid_address_is_refused(api):
    for email in ("", " ", "nobody", "a@b@example.com", "a@example.com\r\nBcc: b@c.de"):
        answer = request(api, email)
        assert (answer.status, answer.code) == (400, "bad_request"), email


def test_a_malformed_body_is_refused(api):
    for body in ({}, {"email": None}, {"email": 1}, {"email": "x" * 1025}):
        answer = api.post("/auth/password/reset/request", body).fails(400, "bad_request")
        assert "email" in answer.json["msg"]


def test_it_is_closed_with_password_login_before_anything_else_is_looked_at(rt, api, user, mailbox):
    configure(rt, auth_password_login_enabled=False)
    for email in (user.email, "nobody@example.com", "nonsense"):
        request(api, email).fails(403, "auth.password_login_disabled")
    # Administrators hear of the switch, but nobody gets a link.
    assert {mail["Subject"] for mail in mailbox.read()} <= {"Gatehouse: security notice"}
    assert audit_rows(rt, ACTION) == []


# --- the audit log -----------------------------------------------------------------------------


def test_a_match_is_recorded_also_within_the_cooldown(rt, api, user, mailbox):
    for _ in range(2):
        request(api, user.email, headers={"User-Agent": "Firefox"}).ok()
    request(api, "nobody@example.com").ok()
    token = mailbox.token(mailbox.only())
    rows = audit_rows(rt, ACTION)
    assert len(rows) == 2
    for row in rows:
        assert (row.user_id, row.entity_id, row.entity_name) == (user.id, user.id, user.username)
        assert (row.entity_type, row.ip_address, row.user_agent) == ("user", "127.0.0.1", "Firefox")
        assert token not in str(row)


# --- what happens between finding the account and writing the mail -----------------------------


@pytest.mark.parametrize(
    "event",
    [
        lambda rt, user: accounts.update(rt, COMMAND_LINE, user.username, status=Status.DISABLED),
        lambda rt, user: change_user(rt, user, email="next@example.com"),
        delete_user,
    ],
    ids=["disabled", "moved", "deleted"],
)
def test_an_account_that_changes_meanwhile_gets_no_mail(rt, api, user, mailbox, monkeypatch, event):
    real = users_queries.find_by_identifier

    def overtaken(reader, who):
        found = real(reader, who)
        monkeypatch.undo()
        event(rt, user)
        return found

    monkeypatch.setattr(users_queries, "find_by_identifier", overtaken)
    request(api, user.email).ok()
    assert mailbox.read() == []
    assert audit_rows(rt, ACTION) == []
