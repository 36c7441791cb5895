"""Sessions that end with the browser's window."""

import pytest
import sqlalchemy as sa

from tests.browsers.conftest import trust
from tests.support.challenge import verify
from tests.support.external import link, sign_in, start, wait_for_account
from tests.support.factories import change_user, configure, moment
from tests.support.fake_provider import SUBJECT
from tests.support.passkeys import Authenticator, register
from tests.support.passkeys import start_login as start_passkey_login

HALF_A_DAY = 43_200
DEVICE = "service_device"


def log_in(client, user, **body):
    typed = {"identifier": user.username, "password": user.password}
    return client.post("/auth/login", typed | body)


def is_short(answer):
    """Return whether all cookies of an answer end with the window, or none."""
    lasting = {"max-age", "expires"}
    [verdict] = {not lasting & set(cookie.attributes) for cookie in answer.set_cookies.values()}
    return verdict


# --- saying so -----------------------------------------------------------------------------------


@pytest.mark.parametrize("body", [{}, {"remember": True}])
def test_people_stay_signed_in_unless_they_say_otherwise(api, user, body):
    answer = log_in(api, user, **body)
    assert not is_short(answer)
    [session] = api.get("/auth/sessions").ok()
    assert life(session) == 7 * 86_400


@pytest.mark.both_databases
def test_every_cookie_of_the_login_ends_with_the_window(api, user):
    answer = log_in(api, user, remember=False)
    assert set(answer.set_cookies) == {
        "service_access",
        "service_refresh",
        "service_csrf",
        DEVICE,
    }
    assert is_short(answer)


def test_a_known_browser_stays_known_for_as_long_as_before(api, user):
    log_in(api, user).ok()
    assert DEVICE not in log_in(api, user, remember=False).set_cookies


@pytest.mark.parametrize("value", ["false", 0, None, []])
def test_it_is_a_boolean(api, user, corp, value):
    log_in(api, user, remember=value).fails(400, "bad_request")
    for path, body in (
        ("/auth/mfa/challenge/verify", {"flow_token": "x", "method": "totp", "code": "1"}),
        ("/auth/passkeys/login/finish", {"flow_id": "x", "credential": {}}),
        ("/auth/external-auth/oidc/corp/start", {}),
    ):
        api.post(path, {**body, "remember": value}).fails(400, "bad_request")


# --- every way to sign in ------------------------------------------------------------------------


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("second", [None, True, False])
def test_the_second_step_does_as_the_first_said_or_says_otherwise(
    api, user, enabled, first, second
):
    token = log_in(api, user, remember=first).ok()["flow_token"]
    said = {} if second is None else {"remember": second}
    body = {"flow_token": token, "method": "totp", "code": enabled.app.code(), **said}
    answer = api.post("/auth/mfa/challenge/verify", body)
    assert is_short(answer) == (not (first if second is None else second))


def test_with_a_passkey(rt, signed_in):
    configure(rt, public_site_url=["http://localhost"])
    device, stranger = Authenticator(), signed_in.stranger()
    register(signed_in, device).ok()
    started = start_passkey_login(stranger)
    credential = device.get(started["public_key"])
    body = {"flow_id": started["flow_id"], "credential": credential, "remember": False}
    answer = stranger.post("/auth/passkeys/login/finish", body)
    answer.ok()
    assert is_short(answer)


@pytest.mark.parametrize("remember", [True, False])
def test_with_another_service_as_its_start_said(rt, api, user, corp, remember):
    provider, fake = corp
    link(rt, user, provider, subject=SUBJECT)
    answer = sign_in(api, fake, remember=remember)
    cookies = {n: c for n, c in answer.set_cookies.items() if not n.startswith("service_external")}
    lasting = {name for name, cookie in cookies.items() if "max-age" in cookie.attributes}
    assert lasting == (set(cookies) if remember else set())


def test_with_another_service_and_a_second_step(rt, api, user, enabled, corp):
    provider, fake = corp
    link(rt, user, provider, subject=SUBJECT)
    target = sign_in(api, fake, remember=False).headers["Location"]
    token = target.partition("flow=")[2].partition("&")[0]
    assert is_short(verify(api, token, enabled.app.code()))


def test_with_another_service_whose_identity_waits_for_a_password(rt, api, user, corp):
    flow = wait_for_account(rt, corp[0])
    with rt.transaction() as session:
        session.execute(sa.text("UPDATE external_auth_pending SET is_short = :yes"), {"yes": True})
    body = {"flow_token": flow, "identifier": user.username, "password": user.password}
    assert is_short(api.post("/auth/external-auth/password-link", body))


def test_an_identity_that_waits_keeps_what_the_start_said(rt, api, user, corp):
    answer = sign_in(api, corp[1], remember=False)
    assert "external_auth=email_required" in answer.headers["Location"]
    with rt.reading() as session:
        assert session.scalar(sa.text("SELECT is_short FROM external_auth_pending"))


@pytest.mark.parametrize("intent", ["link", "confirm"])
def test_linking_and_confirming_ignore_it(signed_in, corp, intent):
    start(signed_in, intent=intent, remember=False)


# --- its life ------------------------------------------------------------------------------------


@pytest.mark.both_databases
def test_it_lasts_half_a_day_without_use(api, user, clock):
    log_in(api, user, remember=False).ok()
    clock.advance(seconds=HALF_A_DAY - 1)
    assert is_short(api.refresh())
    clock.advance(seconds=HALF_A_DAY - 1)
    api.refresh().ok()
    clock.advance(seconds=HALF_A_DAY)
    api.refresh().fails(401, "auth.token_expired")


@pytest.mark.both_databases
def test_others_last_as_long_as_before(api, user, clock):
    log_in(api, user).ok()
    clock.advance(seconds=HALF_A_DAY + 1)
    assert not is_short(api.refresh())


@pytest.mark.parametrize(("short", "refresh", "lasts"), [(300, 900, 300), (900, 600, 600)])
def test_it_lasts_no_longer_than_others(rt, api, user, short, refresh, lasts):
    settings = {"auth_short_session_secs": short, "auth_refresh_token_ttl_secs": refresh}
    configure(rt, auth_access_token_ttl_secs=60, **settings)
    log_in(api, user, remember=False).ok()
    [session] = api.get("/auth/sessions").ok()
    assert life(session) == lasts
    api.refresh().ok()
    [session] = api.get("/auth/sessions").ok()
    assert life(session) == lasts


def test_the_setting_is_five_minutes_at_least(line):
    line.refuses("bad_request", "config", "set", "auth_short_session_secs", "299")


@pytest.mark.parametrize("remember", [True, False])
def test_a_new_password_keeps_it(rt, api, user, remember):
    log_in(api, user, remember=remember).ok()
    body = {"current_password": user.password, "new_password": "another good password"}
    answer = api.put("/auth/password", body)
    assert is_short(answer) == (not remember)
    [session] = api.get("/auth/sessions").ok()
    assert life(session) == (7 * 86_400 if remember else HALF_A_DAY)


def test_a_forced_change_keeps_it_too(rt, api, user):
    change_user(rt, user, must_change_password=True)
    assert is_short(log_in(api, user, remember=False))
    body = {"current_password": user.password, "new_password": "another good password"}
    assert is_short(api.put("/auth/password", body))


def test_a_remembered_browser_may_sign_in_for_a_short_time(api, user, enabled, trusting):
    trust(api, user, enabled)
    answer = log_in(api, user, remember=False)
    assert answer.ok()["status"] == "authenticated"
    assert is_short(answer)


def life(session):
    return (moment(session["expires_at"]) - moment(session["last_seen_at"])).total_seconds()
