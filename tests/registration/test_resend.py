"""POST /auth/register/resend."""

from functools import partial

import pytest

from app.contact_verification import tokens
from app.core.access import COMMAND_LINE
from app.core.client import Client
from app.registration import service
from app.user_admin import service as accounts
from app.users import queries as users_queries
from app.users.models import Status
from tests.support.api import ApiClient
from tests.support.factories import audit_rows, change_user, configure, delete_user, make_user
from tests.support.races import run_concurrently

CONFIRM = "/auth/contact-verification/confirm?token="


def addressee(message):
    [address] = message["To"].addresses
    return address.addr_spec


def resend(client, identifier, **options):
    return client.post("/auth/register/resend", {"identifier": identifier}, **options)


def follow(api, token):
    return api.get(CONFIRM + token).headers["Location"].partition("=")[2]


@pytest.fixture
def waiting(rt):
    """An account that waits for its activation."""
    return make_user(rt, username="Ada", activated=False, verified=False)


def test_the_mail_is_sent_to_the_accounts_address(rt, api, waiting, mailbox):
    resend(api, waiting.username).ok()
    message = mailbox.only()
    assert addressee(message) == waiting.email
    assert follow(api, mailbox.token(message)) == "register-activated"
    api.login(waiting).ok()


def test_the_account_is_found_by_any_spelling(api, waiting, mailbox, clock):
    for typed in ("ada", " ADA ", "ADA@example.com", " ada@example.com "):
        resend(api, typed).ok()
        mailbox.only()
        clock.advance(minutes=1)


def test_what_is_sent_is_audited(rt, api, waiting):
    resend(api, waiting.email, headers={"User-Agent": "curl/8"}).ok()
    [entry] = audit_rows(rt, "user_resend_registration")
    assert (entry.user_id, entry.entity_type, entry.entity_id) == (waiting.id, "user", waiting.id)
    assert (entry.entity_name, entry.user_agent) == ("Ada", "curl/8")


SILENT = {
    "unknown name": lambda rt, user: delete_user(rt, user),
    "activated": lambda rt, user: change_user(rt, user, activated_at=rt.clock.now()),
    "disabled": lambda rt, user: change_user(rt, user, status="disabled"),
    "address blocked": lambda rt, _: configure(rt, auth_local_email_blocklist=["example.com"]),
}


@pytest.mark.parametrize("by", ["username", "email"])
@pytest.mark.parametrize("state", SILENT)
def test_nothing_tells_whether_a_mail_was_sent(rt, api, waiting, mailbox, state, by):
    sent = resend(api, getattr(waiting, by))
    mailbox.only()
    make_user(rt, username="root", role="admin")
    SILENT[state](rt, waiting)
    rt.clock.advance(minutes=5)
    silent = resend(api, getattr(waiting, by))
    assert (silent.status, silent.body) == (sent.status, sent.body)
    told = [
        [
            (name, name if name == "Set-Cookie" else value)
            for name, value in answer.headers.items()
            if name != "X-Request-ID"
        ]
        for answer in (sent, silent)
    ]
    assert told[0] == told[1]
    assert set(sent.set_cookies) == set(silent.set_cookies) == {"service_browser"}
    assert mailbox.read() == []
    assert len(audit_rows(rt, "user_resend_registration")) == 1


def test_nonsense_is_answered_like_anything_else(api, waiting, mailbox):
    expected = resend(api, waiting.username)
    mailbox.only()
    nonsense = ["", "  ", "@", "a@b@c", "no such", "x" * 1024, "%", "ada'--", "ada\r\nBcc: x"]
    for identifier in nonsense:
        answer = resend(api, identifier)
        assert (answer.status, answer.body) == (expected.status, expected.body), identifier
    assert mailbox.read() == []


def test_what_is_no_identifier_is_a_bad_request(api):
    for identifier in (None, 1, ["ada"], "x" * 1025, "nul\x00"):
        answer = resend(api, identifier)
        assert (answer.status, answer.code) == (400, "bad_request"), identifier


def test_a_second_mail_waits_for_the_cooldown(rt, api, waiting, mailbox, clock):
    first = resend(api, waiting.username)
    mailbox.only()
    clock.advance(seconds=59)
    second = resend(api, waiting.username)
    assert second.body == first.body
    assert mailbox.read() == []
    clock.advance(seconds=1)
    resend(api, waiting.username).ok()
    mailbox.only()
    assert len(audit_rows(rt, "user_resend_registration")) == 2


def test_the_cooldown_is_configured(rt, api, waiting, mailbox, clock):
    configure(rt, auth_contact_verification_resend_cooldown_secs=600)
    resend(api, waiting.username).ok()
    clock.advance(seconds=599)
    resend(api, waiting.username).ok()
    mailbox.only()
    clock.advance(seconds=1)
    resend(api, waiting.username).ok()
    mailbox.only()


def test_an_expired_token_needs_no_cooldown(rt, api, waiting, mailbox, clock):
    configure(
        rt,
        auth_register_activation_ttl_secs=10,
        auth_contact_verification_resend_cooldown_secs=600,
    )
    resend(api, waiting.username).ok()
    mailbox.only()
    clock.advance(seconds=10)
    resend(api, waiting.username).ok()
    mailbox.only()


def test_the_mail_of_a_registration_counts_for_the_cooldown(rt, api, mailbox):
    make_user(rt, username="root", role="admin")
    configure(rt, auth_register_activation_enabled="true")
    body = {"username": "new", "email": "new@example.com", "password": "correct horse battery"}
    api.post("/auth/register", body).ok(201)
    resend(api, "new").ok()
    mailbox.only()


@pytest.mark.both_databases
def test_the_new_token_replaces_the_last(api, waiting, mailbox, clock):
    resend(api, waiting.username).ok()
    first = mailbox.token(mailbox.only())
    clock.advance(minutes=1)
    resend(api, waiting.username).ok()
    second = mailbox.token(mailbox.only())
    assert follow(api, first) == "invalid"
    assert follow(api, second) == "register-activated"


def test_the_password_switch_closes_it_for_everybody(rt, api, waiting, mailbox):
    configure(rt, auth_password_login_enabled=False)
    resend(api, waiting.username).fails(403, "auth.password_login_disabled")
    resend(api, "nobody").fails(403, "auth.password_login_disabled")
    assert mailbox.read() == []


def test_it_works_while_registration_is_closed(rt, api, waiting, mailbox):
    configure(rt, auth_allow_user_registration=False, auth_register_activation_enabled="false")
    resend(api, waiting.username).ok()
    mailbox.only()


def test_another_sites_page_cannot_have_it_sent(api, waiting, mailbox):
    headers = {"Sec-Fetch-Site": "cross-site"}
    answer = resend(api, waiting.username, headers=headers)
    answer.fails(403, "auth.request_source_untrusted")
    assert mailbox.read() == []


def test_it_takes_its_time_whatever_happens(rt, api, waiting, clock):
    for identifier in (waiting.username, waiting.username, "nobody", 1):
        resend(api, identifier)
        assert 0.35 <= clock.slept[-1] <= 0.475
    assert len(clock.slept) == 4
    configure(rt, auth_password_login_enabled=False)
    resend(api, "nobody")
    assert 0.35 <= clock.slept[-1] <= 0.475


@pytest.mark.both_databases
def test_of_sixteen_at_once_one_sends(app, rt, waiting, mailbox):
    clients = [ApiClient(app) for _ in range(16)]
    answers = run_concurrently([partial(resend, client, waiting.username) for client in clients])
    assert {(answer.status, answer.body) for answer in answers} == {(200, answers[0].body)}
    mailbox.only()
    assert len(audit_rows(rt, "user_resend_registration")) == 1


OVERTAKING = {
    "disabled": lambda rt, user: accounts.update(
        rt, COMMAND_LINE, user.username, status=Status.DISABLED
    ),
    "activated": lambda rt, user: accounts.update(
        rt, COMMAND_LINE, user.username, email_verified=True
    ),
    "deleted": lambda rt, user: accounts.delete(rt, COMMAND_LINE, user.username),
}


@pytest.mark.parametrize("event", OVERTAKING)
def test_an_account_that_changes_meanwhile_gets_no_mail(rt, waiting, mailbox, monkeypatch, event):
    """The operator is faster, between the first look at the account and its lock."""
    real = users_queries.find_by_identifier

    def overtaken(*arguments):
        found = real(*arguments)
        monkeypatch.undo()
        OVERTAKING[event](rt, waiting)
        return found

    monkeypatch.setattr(users_queries, "find_by_identifier", overtaken)
    asked = {"identifier": waiting.username, "client": Client()}
    service.resend_activation(rt, **asked)
    assert mailbox.read() == []
    assert audit_rows(rt, "user_resend_registration") == []


def test_tokens_are_long_and_stored_as_digests_only(rt, api, waiting, mailbox):
    resend(api, waiting.username).ok()
    token = mailbox.token(mailbox.only())
    assert token.startswith(tokens.PREFIX)
    assert len(token) == len(tokens.PREFIX) + 43
    with rt.reading() as connection:
        for table in ("contact_verification_tokens", "mail_outbox", "audit_log"):
            rows = connection.connection().exec_driver_sql(f"SELECT * FROM {table}").all()
            assert rows
            assert token not in str(rows)
