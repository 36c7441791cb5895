"""External sign-in under simultaneous requests."""

import itertools
from collections import Counter
from contextlib import suppress
from threading import Barrier, BrokenBarrierError, Lock

import pytest

from app.core.access import COMMAND_LINE
from app.core.errors import AppError
from app.external_auth.models import Identity, PendingIdentity
from app.external_auth.providers import service as providers
from app.external_auth.sign_in import linking
from app.sessions.models import LoginSession
from app.users.models import User
from tests.support.api import ApiClient
from tests.support.external import (
    add_provider,
    change_provider,
    come_back,
    cookie_name,
    link,
    links,
    start,
    wait_for_account,
)
from tests.support.factories import change_user, configure, count, make_user
from tests.support.fake_provider import PERSON
from tests.support.races import run_concurrently

pytestmark = pytest.mark.both_databases

MANY = 8


def led_to(answers):
    """Count what the browsers were told."""
    paths = (answer.headers["Location"].removeprefix("http://localhost") for answer in answers)
    return Counter(path.partition("&flow=")[0] for path in paths)


def begun(app, fake, number=MANY, key="corp"):
    """Begin sign-ins in as many browsers; return what brings each back."""
    browsers = [ApiClient(app) for _ in range(number)]
    urls = [start(browser, key=key).url for browser in browsers]
    brought = [(browser, fake.sign_in(url)) for browser, url in zip(browsers, urls, strict=True)]
    return [lambda b=browser, p=parameters: come_back(b, p) for browser, parameters in brought]


def somebody_else_each_time(fake, **claims):
    """Have the provider speak of another identity at each sign-in, numbered in the claims."""
    numbers, turn, genuine = itertools.count(), Lock(), fake._token

    def token(request):
        with turn:
            number = next(numbers)
            fake.claims = {name: text.format(number) for name, text in claims.items()}
            return genuine(request)

    fake.reply("/token", token)


def test_first_sign_ins_of_one_identity_make_one_account(rt, app, admin, fake, corp):
    change_provider(rt, corp, auto_provision_enabled=True)
    answers = run_concurrently(begun(app, fake))
    assert led_to(answers) == {"/": MANY}
    assert count(rt, User) == 2
    assert count(rt, Identity) == 1
    assert count(rt, LoginSession) == MANY


def test_first_sign_ins_of_one_identity_link_one_account(rt, app, admin, fake, corp):
    change_provider(rt, corp, auto_link_verified_email_enabled=True)
    owner = make_user(rt, email=PERSON["email"])
    answers = run_concurrently(begun(app, fake))
    assert led_to(answers) == {"/": MANY}
    assert [row.user_id for row in links(rt)] == [owner.id]


def test_of_two_identities_that_race_for_an_address_one_gets_it(rt, app, admin, fake, corp):
    change_provider(rt, corp, auto_provision_enabled=True)
    somebody_else_each_time(fake, sub="identity {}")
    answers = run_concurrently(begun(app, fake))
    assert led_to(answers) == {"/": 1, "/login?external_auth=email_required": MANY - 1}
    assert (count(rt, User), count(rt, Identity)) == (2, 1)


def test_who_looks_for_an_address_holds_it(rt, app, admin, fake, corp, monkeypatch):
    """Else two would find it free, and the second could only be told that it failed."""
    change_provider(rt, corp, auto_provision_enabled=True)
    somebody_else_each_time(fake, sub="identity {}")
    both, real = Barrier(2), linking.find_account_by_email

    def find_account_by_email(reader, address):
        with suppress(BrokenBarrierError):
            both.wait(0.5)
        return real(reader, address)

    monkeypatch.setattr(linking, "find_account_by_email", find_account_by_email)
    answers = run_concurrently(begun(app, fake, 2))
    assert led_to(answers) == {"/": 1, "/login?external_auth=email_required": 1}


def test_of_one_callback_in_many_requests_one_signs_in(rt, app, user, fake, corp):
    link(rt, user, corp, subject=PERSON["sub"])
    api = ApiClient(app)
    started = start(api)
    parameters = fake.sign_in(started.url)

    def job():
        browser = ApiClient(app)
        browser._client.set_cookie(
            cookie_name(started.state), started.cookie, path="/api/v1/auth/external-auth"
        )
        return come_back(browser, parameters)

    told = led_to(run_concurrently([job] * MANY))
    assert told == {"/": 1, "/login?external_auth=error&code=auth.credentials_failed": MANY - 1}
    assert len(fake.seen("/token")) == 1
    assert count(rt, LoginSession) == 1


def test_of_one_code_at_two_providers_one_is_sent_it(rt, app, user, fake, corp):
    """A lured code that is injected while it comes back (RFC 9700 §4.4)."""
    add_provider(rt, fake, kind="generic_oauth2", key="evil")
    for _ in range(4):
        browsers = [ApiClient(app), ApiClient(app)]
        honest, lured = start(browsers[0]), start(browsers[1], "generic_oauth2", "evil")
        code = fake.sign_in(honest.url)["code"]
        fake.requests.clear()
        run_concurrently(
            [
                lambda b=browser, s=started, c=code: come_back(b, {"code": c, "state": s.state})
                for browser, started in zip(browsers, (honest, lured), strict=True)
            ]
        )
        assert len(fake.seen("/token")) == 1


def test_usernames_taken_at_once_get_different_ends(rt, app, admin, fake, corp):
    change_provider(rt, corp, auto_provision_enabled=True)
    somebody_else_each_time(fake, sub="identity {}", email="jane{}@example.com")
    answers = run_concurrently(begun(app, fake))
    assert led_to(answers) == {"/": MANY}
    assert (count(rt, User), count(rt, Identity)) == (MANY + 1, MANY)


# --- waiting identities --------------------------------------------------------------------------


@pytest.fixture
def provider(rt, user):
    return add_provider(rt, auto_provision_enabled=True)


def test_of_many_requests_for_the_mail_one_is_heard(rt, app, provider, mailbox):
    flow_token = wait_for_account(rt, provider)
    path = "/auth/external-auth/email-verification/start"
    jobs = [
        lambda n=n: ApiClient(app).post(
            path, {"flow_token": flow_token, "email": f"jane{n}@example.com"}
        )
        for n in range(MANY)
    ]
    codes = Counter(answer.code for answer in run_concurrently(jobs))
    assert codes == {"success": 1, "auth.contact_verification_invalid": MANY - 1}
    mailbox.only()


def test_of_many_clicks_on_the_link_one_signs_in(rt, app, provider, mailbox):
    flow_token = wait_for_account(rt, provider)
    body = {"flow_token": flow_token, "email": "jane@example.com"}
    ApiClient(app).post("/auth/external-auth/email-verification/start", body).ok()
    token = mailbox.token(mailbox.only())
    path = f"/auth/external-auth/email-verification/confirm?token={token}"
    told = led_to(run_concurrently([lambda: ApiClient(app).post(path)] * MANY))
    assert told == {
        "/files": 1,
        "/login?external_auth=email_verification_invalid": MANY - 1,
    }
    assert count(rt, User) == 3
    assert count(rt, LoginSession) == 1


def test_of_password_and_mailbox_one_gets_the_identity(rt, app, user, provider, mailbox):
    other = make_user(rt, email="jane@example.com")
    flow_token = wait_for_account(rt, provider)
    body = {"flow_token": flow_token, "email": other.email}
    ApiClient(app).post("/auth/external-auth/email-verification/start", body).ok()
    token = mailbox.token(mailbox.only())
    confirm = f"/auth/external-auth/email-verification/confirm?token={token}"
    login = {"flow_token": flow_token, "identifier": user.username, "password": user.password}
    jobs = [
        lambda: ApiClient(app).post(confirm),
        lambda: ApiClient(app).post("/auth/external-auth/password-link", login),
    ] * 3
    run_concurrently(jobs)
    [row] = links(rt)
    assert row.user_id in {user.id, other.id}
    assert count(rt, LoginSession) == 1


def test_of_many_right_passwords_one_links(rt, app, user, provider):
    flow_token = wait_for_account(rt, provider)
    body = {"flow_token": flow_token, "identifier": user.username, "password": user.password}
    jobs = [lambda: ApiClient(app).post("/auth/external-auth/password-link", body)] * MANY
    codes = Counter(answer.code for answer in run_concurrently(jobs))
    assert codes == {"success": 1, "auth.contact_verification_invalid": MANY - 1}
    assert count(rt, PendingIdentity, PendingIdentity.consumed_at.is_(None)) == 0


# --- the last way in -----------------------------------------------------------------------------


def test_two_removals_at_once_leave_a_way_in(rt, app, api, user, provider):
    second = add_provider(rt, kind="github", key="hub")
    api.login(user).ok()
    change_user(rt, user, password_hash=None)
    ids = [link(rt, user, provider), link(rt, user, second)]
    clients = [api.twin() for _ in ids]
    jobs = [
        lambda c=client, i=link_id: c.delete(f"/auth/external-auth/links/{i}")
        for client, link_id in zip(clients, ids, strict=True)
    ]
    codes = Counter(answer.code for answer in run_concurrently(jobs))
    assert codes == {"success": 1, "conflict": 1}
    assert len(links(rt)) == 1


def test_many_removals_of_one_link_remove_it_once(rt, api, user, provider):
    link_id = link(rt, user, provider)
    api.login(user).ok()
    clients = [api.twin() for _ in range(MANY)]
    jobs = [lambda c=c: c.delete(f"/auth/external-auth/links/{link_id}") for c in clients]
    codes = Counter(answer.code for answer in run_concurrently(jobs))
    assert codes == {"success": 1, "not_found": MANY - 1}


def test_a_sign_in_and_a_removal_at_once_leave_no_half(rt, app, api, user, fake, corp):
    for _ in range(4):
        link_id = link(rt, user, corp, subject=PERSON["sub"])
        api.login(user).ok()
        owner = api.twin()
        [back] = begun(app, fake, 1)
        [removed, answer] = run_concurrently(
            [lambda o=owner, i=link_id: o.delete(f"/auth/external-auth/links/{i}"), back]
        )
        removed.ok()
        assert set(led_to([answer])) <= {"/", "/login?external_auth=email_required"}
        assert links(rt) == []


def attempt(job):
    try:
        job()
    except AppError as error:
        return error.code.value
    return "success"


def test_the_last_provider_and_the_last_built_in_way_do_not_go_together(rt):
    """Of switching passwords off and disabling the provider only one can happen."""
    for _ in range(4):
        add_provider(rt)
        configure(rt, auth_passkey_login_enabled=False)

        told = run_concurrently(
            [
                lambda: attempt(lambda: configure(rt, auth_password_login_enabled=False)),
                lambda: attempt(lambda: providers.update(rt, COMMAND_LINE, "corp", enabled=False)),
            ]
        )
        assert sorted(told) in (["bad_request", "success"], ["forbidden", "success"])
        configure(rt, auth_password_login_enabled=True, auth_passkey_login_enabled=True)
        providers.remove(rt, COMMAND_LINE, "corp", is_forced=True)
