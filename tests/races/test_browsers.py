"""Known browsers under simultaneous requests."""

import pytest

from app.browsers import service as browsers
from app.browsers.models import Browser
from app.login import completion
from tests.support.api import ApiClient
from tests.support.challenge import give_totp, start_login, verify
from tests.support.factories import configure, count, make_user
from tests.support.races import run_concurrently

pytestmark = pytest.mark.both_databases

DEVICE = "service_device"
MONTH = 30 * 86_400


@pytest.fixture
def enabled(rt, user, clock):
    configure(rt, auth_mfa_trusted_device_secs=MONTH)
    return give_totp(rt, user, clock)


def trust(client, token, code):
    body = {"flow_token": token, "method": "totp", "code": code, "remember_device": True}
    return client.post("/auth/mfa/challenge/verify", body)


def clients(app, number, device=None):
    made = [ApiClient(app) for _ in range(number)]
    for client in made:
        if device:
            client.set_cookie(DEVICE, device)
    return made


def skips(app, device, user):
    [client] = clients(app, 1, device)
    return client.login(user).ok()["status"] == "authenticated"


def test_one_code_sent_many_times_at_once_remembers_one_browser(rt, app, api, user, enabled):
    token, code = start_login(api, user), enabled.app.code()
    many = clients(app, 16)
    answers = run_concurrently([lambda c=c: trust(c, token, code) for c in many])
    assert [a.code for a in answers].count("success") == 1
    assert count(rt, Browser, Browser.remembered_until.is_not(None)) == 1
    [won] = [client for client, answer in zip(many, answers, strict=True) if answer.status == 200]
    assert skips(app, won.device, user)


def test_grants_of_several_accounts_in_one_browser_leave_no_old_value(rt, app, api, user, clock):
    """Each browser row has one value, and only what was last given out may skip a step."""
    configure(rt, auth_mfa_trusted_device_secs=MONTH)
    users = [make_user(rt) for _ in range(4)]
    for each in users:
        api.login(each).ok()
    old = api.device
    apps = [give_totp(rt, each, clock) for each in users]
    waiting = [
        (client, start_login(client, each), each_app.app.code())
        for client, each, each_app in zip(clients(app, 4, old), users, apps, strict=True)
    ]
    answers = run_concurrently([lambda w=w: trust(*w) for w in waiting])
    assert [answer.code for answer in answers] == ["success"] * 4
    assert count(rt, Browser, Browser.remembered_until.is_not(None)) == 4
    assert not any(skips(app, old, each) for each in users)
    for (client, *_), each in zip(waiting, users, strict=True):
        assert client.device != old
        # Its own account, unless a grant after it has given that account another value.
        assert skips(app, client.device, each) or any(
            skips(app, other.device, each) for other, *_ in waiting
        )


def test_an_account_keeps_to_its_number_of_browsers(rt, app, user, monkeypatch):
    monkeypatch.setattr(browsers, "MOST", 5)
    answers = run_concurrently([lambda c=c: c.login(user) for c in clients(app, 8)])
    assert [answer.code for answer in answers] == ["success"] * 8
    assert count(rt, Browser) == 5


def test_many_sign_ins_with_one_known_value_stay_one_row(rt, app, api, user):
    api.login(user).ok()
    answers = run_concurrently([lambda c=c: c.login(user) for c in clients(app, 8, api.device)])
    assert [answer.code for answer in answers] == ["success"] * 8
    assert count(rt, Browser) == 1


def test_mails_about_new_browsers_keep_to_their_number(app, api, user, mailbox, monkeypatch):
    monkeypatch.setattr(browsers, "MOST_NOTICES", 3)
    api.login(user).ok()
    run_concurrently([lambda c=c: c.login(user) for c in clients(app, 8)])
    subjects = sorted(mail["Subject"] for mail in mailbox.read())
    assert subjects == ["Gatehouse: new sign-in"] * 3 + ["Gatehouse: security notice"]


@pytest.mark.parametrize("what", ["devices", "codes"])
def test_what_voids_it_while_a_sign_in_relies_on_it_makes_it_wait(
    app, api, user, enabled, monkeypatch, what
):
    """The browser was remembered when the first step was proven, and is not any more."""
    token = start_login(api, user)
    trust(api, token, enabled.app.code()).ok()
    [late] = clients(app, 1, api.device)
    real = browsers.is_remembered

    def overtaken(*arguments):
        found = real(*arguments)
        if what == "devices":
            api.delete("/auth/mfa/devices").ok()
        else:
            code = {"code": enabled.app.wait()}
            api.post("/auth/mfa/recovery-codes/regenerate", code).ok()
        return found

    monkeypatch.setattr(completion.browsers, "is_remembered", overtaken)
    answer = late.login(user)
    assert answer.ok()["status"] == "mfa_required"
    assert answer.set_cookies == {}


def test_sign_ins_and_what_voids_them_at_once_end_with_nothing_remembered(
    rt, app, api, user, enabled
):
    token = start_login(api, user)
    trust(api, token, enabled.app.code()).ok()
    device = api.device
    jobs = [lambda c=c: c.login(user) for c in clients(app, 8, device)]
    jobs.append(lambda: api.delete("/auth/mfa/devices"))
    answers = run_concurrently(jobs)
    assert {answer.status for answer in answers} == {200}
    assert count(rt, Browser, Browser.remembered_until.is_not(None)) == 0
    assert not skips(app, device, user)
    verify(api, start_login(api, user), enabled.app.wait()).ok()


@pytest.mark.parametrize("attempt", range(3))
def test_a_grant_and_the_end_of_all_sessions_at_once_leave_nothing_remembered(
    rt, app, api, user, enabled, line, attempt
):
    api.login(make_user(rt)).ok()
    token, code = start_login(api, user), enabled.app.code()
    answer, _ = run_concurrently(
        [
            lambda: trust(api, token, code),
            lambda: line.json("users", "revoke-sessions", user.username),
        ]
    )
    assert answer.code in ("success", "auth.mfa_flow_invalid")
    assert count(rt, Browser, Browser.remembered_until.is_not(None)) == 0
