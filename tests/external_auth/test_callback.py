"""Coming back from a provider: whose sign-in it is, and where the browser goes."""

import logging
from unittest.mock import Mock

import pytest
import sqlalchemy as sa
from prometheus_client import REGISTRY
from redis.exceptions import ConnectionError as RedisGone
from sqlalchemy.exc import OperationalError

from app.core.config import Bucket
from app.core.http_client import HttpClient
from app.external_auth.models import Identity
from app.external_auth.sign_in import linking, service
from app.sessions.models import LoginSession
from app.users.models import User
from tests.support.api import ApiClient
from tests.support.challenge import give_totp, verify
from tests.support.external import (
    add_provider,
    asks_for_address,
    change_provider,
    come_back,
    cookie_name,
    delete_provider,
    fails,
    link,
    location,
    sign_in,
    signs_in,
    start,
    told,
)
from tests.support.factories import audit_rows, change_user, configure, count, make_user
from tests.support.fake_provider import DISCOVERY, PERSON, SUBJECT, FakeProvider
from tests.support.provider_faults import FAULTS

REFUSED = "auth.credentials_failed"
LEGACY = "/auth/external-auth/oidc/corp/callback"


@pytest.fixture
def jane(rt, user, fake, corp):
    """An account that the provider's Jane signs in to."""
    link(rt, user, corp, subject=SUBJECT, identity_namespace=fake.issuer)
    return user


def clears(answer, state):
    """Insist that the cookie of this sign-in is removed, and nothing else is set."""
    [name] = answer.set_cookies
    assert name == cookie_name(state)
    cookie = answer.set_cookies[name]
    assert cookie.value == ""
    lasting = {n: v for n, v in cookie.attributes.items() if n != "expires"}  # as "max-age" says
    assert lasting == {
        "path": "/api/v1/auth/external-auth",
        "max-age": "0",
        "httponly": True,
        "samesite": "Lax",
    }


# --- where it leads ---------------------------------------------------------------------------


@pytest.mark.both_databases
def test_a_linked_identity_signs_in(rt, api, jane, fake):
    answer = signs_in(sign_in(api, fake, return_path="/files?folder=7"), "/files?folder=7")
    cookies = answer.set_cookies
    assert cookies["service_access"].attributes["path"] == "/"
    assert cookies["service_refresh"].attributes["path"] == "/api/v1/auth"
    assert api.me().ok()["id"] == jane.id
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert {n: c.value for n, c in cookies.items() if n.startswith("service_external")} != {}
    [session] = api.get("/auth/sessions").ok()
    assert session["ip_address"] == "127.0.0.1"


def test_the_cookie_goes_with_the_sign_in(api, jane, fake):
    started = start(api)
    answer = come_back(api, fake.sign_in(started.url))
    cookie = answer.set_cookies[cookie_name(started.state)]
    assert (cookie.value, cookie.attributes["max-age"]) == ("", "0")


def test_a_second_factor_is_asked_for(rt, api, jane, fake, clock):
    enabled = give_totp(rt, jane)
    answer = sign_in(api, fake, return_path="/files?a=b&c=d e")
    data = told(answer)
    assert list(data) == ["mfa", "flow", "expires_in", "methods", "return_path"]
    assert data["mfa"] == "required"
    assert data["expires_in"] == "300"
    assert data["methods"] == "totp,recovery_code"
    assert data["return_path"] == "/files?a=b&c=d e"
    assert "methods=totp%2Crecovery_code&" in answer.headers["Location"]
    assert "return_path=%2Ffiles%3Fa%3Db%26c%3Dd%20e" in answer.headers["Location"]
    assert list(answer.set_cookies) == [next(iter(answer.set_cookies))]
    assert api.cookies == {}
    # The provider's sign-in is no password login, and goes on without it.
    configure(rt, auth_password_login_enabled=False)
    verify(api, data["flow"], enabled.app.code()).ok()
    assert api.me().ok()["id"] == jane.id


def test_a_forced_password_change_comes_first(rt, api, jane, fake):
    change_user(rt, jane, must_change_password=True)
    signs_in(sign_in(api, fake, return_path="/files"), "/force-password-change")
    api.get("/auth/sessions").fails(403, "auth.password_change_required")
    configure(rt, auth_password_login_enabled=False)
    signs_in(sign_in(api, fake, return_path="/files"), "/files")


def test_an_identity_without_account_is_asked_for_one(api, corp, fake):
    flow = asks_for_address(sign_in(api, fake, return_path="/a b?c=d"), "/a b?c=d")
    assert len(flow) == len("oev_") + 32


def test_without_an_address_of_the_site_only_the_path_is_sent(rt, api, jane, fake):
    started = start(api)
    configure(rt, public_site_url=[])
    answer = come_back(api, fake.sign_in(started.url))
    assert answer.headers["Location"] == "/"


def test_the_first_address_of_the_site_is_where_it_leads(rt, api, jane, fake):
    configure(rt, public_site_url=["https://files.example", "http://localhost"])
    answer = sign_in(api, fake, return_path="/x")
    assert answer.headers["Location"] == "https://files.example/x"


def test_the_login_is_audited_when_the_identity_is_proven(rt, api, jane, fake):
    give_totp(rt, jane)
    told(sign_in(api, fake))
    [entry] = audit_rows(rt, "user_external_auth_login")
    assert (entry.user_id, entry.entity_type, entry.entity_id, entry.entity_name) == (
        jane.id,
        "external_auth_identity",
        None,
        "corp",
    )
    for part in ('"provider_key": "corp"', f'"issuer": "{fake.issuer}"', f'"{SUBJECT}"'):
        assert part in entry.details
    assert '"linked": false, "auto_provisioned": false' in entry.details
    assert entry.ip_address == "127.0.0.1"


# --- whose sign-in it is ----------------------------------------------------------------------


def test_without_a_state_nothing_happens(api, jane, fake):
    parameters = fake.sign_in(start(api).url)
    answer = fails(come_back(api, {"code": parameters["code"]}), REFUSED)
    assert answer.set_cookies == {}
    fails(come_back(api, {}), REFUSED)
    signs_in(come_back(api, parameters))


def test_without_its_cookie_nothing_happens(api, jane, fake):
    parameters = fake.sign_in(start(api).url)
    stranger = api.stranger()
    clears(fails(come_back(stranger, parameters), REFUSED), parameters["state"])
    signs_in(come_back(api, parameters))


def test_another_browsers_cookie_opens_nothing(app, api, jane, fake):
    """A link to the attacker's own callback must not sign the victim in to the attacker's."""
    victim = ApiClient(app)
    theirs = start(victim)
    parameters = fake.sign_in(start(api).url)
    victim._client.set_cookie(
        cookie_name(parameters["state"]), theirs.cookie, path="/api/v1/auth/external-auth"
    )
    fails(come_back(victim, parameters), REFUSED)
    signs_in(come_back(api, parameters))
    signs_in(come_back(victim, fake.sign_in(theirs.url)))


@pytest.mark.parametrize("change", [lambda s: s + "x", lambda s: s[:-1], str.swapcase, str.upper])
def test_a_tampered_state_finds_nothing(api, jane, fake, change):
    parameters = fake.sign_in(start(api).url)
    wrong = change(parameters["state"])
    clears(fails(come_back(api, parameters | {"state": wrong}), REFUSED), wrong)
    signs_in(come_back(api, parameters))


@pytest.mark.both_databases
def test_a_replayed_callback_is_refused(rt, api, jane, fake):
    started = start(api)
    parameters = fake.sign_in(started.url)
    signs_in(come_back(api, parameters))
    api._client.set_cookie(
        cookie_name(started.state), started.cookie, path="/api/v1/auth/external-auth"
    )
    fails(come_back(api, parameters), REFUSED)
    assert count(rt, LoginSession) == 1


def test_sign_ins_of_one_browser_do_not_disturb_each_other(rt, api, jane, fake):
    first, second, third = (start(api, return_path=f"/{n}") for n in (1, 2, 3))
    signs_in(come_back(api, fake.sign_in(second.url)), "/2")
    fails(come_back(api, {"state": third.state, "error": "access_denied"}), REFUSED)
    signs_in(come_back(api, fake.sign_in(first.url)), "/1")


def test_a_code_of_another_sign_in_is_refused(rt, api, jane, fake):
    """Code injection: the code was given for another verifier and another nonce."""
    stolen = fake.sign_in(start(ApiClient(api.app)).url)["code"]
    mine = fake.sign_in(start(api).url)
    fails(come_back(api, mine | {"code": stolen}), REFUSED)
    assert count(rt, LoginSession) == 0


def test_a_sign_in_lasts_300_seconds(api, jane, fake, clock):
    started = start(api)
    clock.advance(seconds=299)
    signs_in(come_back(api, fake.sign_in(started.url)))
    started = start(api)
    parameters = fake.sign_in(started.url)
    clock.advance(seconds=300)
    fails(come_back(api, parameters), REFUSED)


def test_its_life_is_a_setting(rt, api, jane, fake, clock):
    configure(rt, auth_external_flow_ttl_secs=20)
    started = start(api)
    clock.advance(seconds=20)
    fails(come_back(api, fake.sign_in(started.url)), REFUSED)


# --- what the provider may say -----------------------------------------------------------------


def test_a_refusal_of_the_provider_ends_the_sign_in(rt, api, jane, fake):
    started = start(api)
    parameters = {"state": started.state, "error": "access_denied", "error_description": "<b>"}
    clears(fails(come_back(api, parameters), REFUSED), started.state)
    fails(come_back(api, fake.sign_in(started.url)), REFUSED)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        ("invalid_scope", "invalid_scope"),
        ("access_denied", "access_denied"),
        ("in\r\nva\x1blid\u202e", "in va lid"),
        ("x" * 300, "x" * 100),
    ],
)
def test_why_a_provider_sends_somebody_back_is_logged(api, jane, caplog, error, told):
    logging.getLogger().addHandler(caplog.handler)
    caplog.set_level(logging.WARNING)
    sent = {"state": start(api).state, "error": error, "error_description": "of Jane"}
    fails(come_back(api, sent), REFUSED)
    logging.getLogger().removeHandler(caplog.handler)
    lines = [record.getMessage() for record in caplog.records]
    assert f"external provider corp (oidc): the callback says: {told}" in lines
    assert "of Jane" not in caplog.text


def test_an_error_beside_a_code_is_an_error(api, jane, fake):
    parameters = fake.sign_in(start(api).url)
    fails(come_back(api, parameters | {"error": ""}), REFUSED)
    assert fake.seen("/token") == []


@pytest.mark.parametrize("code", [None, ""])
def test_without_a_code_the_sign_in_is_over(api, jane, fake, code):
    started = start(api)
    parameters = {"state": started.state} | ({} if code is None else {"code": code})
    fails(come_back(api, parameters), REFUSED)
    fails(come_back(api, fake.sign_in(started.url)), REFUSED)


def test_unknown_parameters_are_ignored(api, jane, fake):
    parameters = fake.sign_in(start(api).url)
    signs_in(come_back(api, parameters | {"session_state": "x", "scope": "openid"}))


@pytest.mark.parametrize("announced", [True, False])
def test_the_issuer_of_the_callback_is_checked(api, jane, fake, announced):
    """RFC 9207."""
    fake.metadata["authorization_response_iss_parameter_supported"] = announced
    parameters = fake.sign_in(start(api).url)
    signs_in(come_back(api, parameters | {"iss": fake.issuer}))
    parameters = fake.sign_in(start(api).url)
    fails(come_back(api, parameters | {"iss": "https://evil.example"}), REFUSED)
    parameters = fake.sign_in(start(api).url)
    answer = come_back(api, parameters)
    if announced:
        fails(answer, REFUSED)
    else:
        signs_in(answer)


# One for each step that can refuse; the driver's own tests have them all.
@pytest.mark.parametrize(
    "fault",
    [
        "iss of another issuer",
        "nonce of another sign-in",
        "another key",
        "no token at all",
        "refused",
        "too large",
        "hung up",
    ],
)
def test_a_wrong_answer_leaves_no_account_and_no_session(rt, api, jane, fake, corp, fault):
    change_provider(rt, corp, auto_provision_enabled=True, auto_link_verified_email_enabled=True)
    before = count(rt, User), count(rt, Identity)
    FAULTS[fault](fake)  # before its keys are read, which are then remembered for a while
    started = start(api)
    parameters = fake.sign_in(started.url)
    clears(fails(come_back(api, parameters), REFUSED), started.state)
    assert (count(rt, User), count(rt, Identity)) == before
    assert count(rt, LoginSession) == 0
    assert audit_rows(rt, "user_external_auth_login") == []
    # The provider recovers, the sign-in does not.
    api._client.set_cookie(
        cookie_name(started.state), started.cookie, path="/api/v1/auth/external-auth"
    )
    fails(come_back(api, parameters), REFUSED)


def test_nothing_of_the_database_is_held_while_the_provider_is_asked(make_app, rt, jane, fake):
    """A slow provider must cost its own users time, and nobody else."""
    app = make_app(database_pool=1, http_client=HttpClient(allow_loopback=True))
    other = app.extensions["gatehouse"]
    asked = []

    def answer(request):
        del fake.replies[request.path]
        with other.transaction() as session:
            session.execute(sa.text("SELECT 1"))
        with other.reading() as connection:
            connection.execute(sa.text("SELECT 1"))
        asked.append(request.path)
        return fake._answer(request)

    for path in (DISCOVERY, "/jwks", "/token"):
        fake.reply(path, answer)
    signs_in(sign_in(ApiClient(app), fake))
    assert asked == [DISCOVERY, "/jwks", "/token"]


# --- the provider itself ------------------------------------------------------------------------


def test_a_provider_that_was_disabled_meanwhile(rt, api, jane, fake, corp):
    parameters = fake.sign_in(start(api).url)
    change_provider(rt, corp, enabled=False)
    fails(come_back(api, parameters), "external_auth.provider_disabled")
    assert fake.seen("/token") == []


def test_a_provider_that_is_disabled_while_it_is_asked(rt, api, jane, fake, corp):
    parameters = fake.sign_in(start(api).url)
    genuine = fake._token

    def token(request):
        change_provider(rt, corp, enabled=False)
        return genuine(request)

    fake.reply("/token", token)
    fails(come_back(api, parameters), "external_auth.provider_disabled")


def test_a_provider_that_was_removed_meanwhile(rt, api, jane, fake, corp, clock):
    parameters = fake.sign_in(start(api).url)
    delete_provider(rt, corp)
    fails(come_back(api, parameters), REFUSED)
    parameters = fake.sign_in(start(api, key=_another(rt, fake, clock)).url)
    asks_for_address(come_back(api, parameters))


def _another(rt, fake, clock):
    clock.advance(seconds=1)
    return add_provider(rt, fake).key


def test_a_provider_that_was_made_anew_is_another(rt, api, user, fake, corp, clock):
    parameters = fake.sign_in(start(api).url)
    delete_provider(rt, corp)
    clock.advance(seconds=1)
    add_provider(rt, fake)
    fails(come_back(api, parameters), REFUSED)


def test_a_provider_that_is_removed_while_it_is_asked(rt, api, jane, fake, corp):
    parameters = fake.sign_in(start(api).url)
    genuine = fake._token

    def token(request):
        delete_provider(rt, corp)
        return genuine(request)

    fake.reply("/token", token)
    fails(come_back(api, parameters), REFUSED)


def test_a_fault_of_the_set_up_is_not_told(rt, api, jane, corp, fake):
    parameters = fake.sign_in(start(api).url)
    change_provider(rt, corp, client_secret="v1:gone:AAAA:AAAA")
    fails(come_back(api, parameters), None)


def test_a_fault_of_ours_is_not_told_either(rt, api, jane, corp, fake, monkeypatch, caplog):
    parameters = fake.sign_in(start(api).url)
    monkeypatch.setattr("app.external_auth.sign_in.linking.resolve", lambda *_: 1 / 0)
    fails(come_back(api, parameters), None)


def test_a_second_factor_that_cannot_be_remembered(make_app, rt, jane, fake, monkeypatch):
    """The first half went well, the second needs a Redis that just went away."""
    app = make_app(http_client=HttpClient(allow_loopback=True))
    api, theirs = ApiClient(app), app.extensions["gatehouse"]
    give_totp(rt, jane)
    parameters = fake.sign_in(start(api).url)
    genuine = fake._token

    def token(request):
        monkeypatch.setattr(theirs.redis.client.connection_pool, "get_connection", _refuse)
        return genuine(request)

    fake.reply("/token", token)
    fails(come_back(api, parameters), None)


def _refuse(*_arguments, **_options):
    raise RedisGone


# --- accounts that may not sign in -------------------------------------------------------------


def test_a_disabled_account_is_told_so(rt, api, jane, fake):
    change_user(rt, jane, status="disabled")
    fails(sign_in(api, fake), "auth.account_disabled")


def test_an_account_that_was_never_activated_is_told_so(rt, api, jane, fake):
    change_user(rt, jane, activated_at=None)
    fails(sign_in(api, fake), "auth.pending_activation")


# --- the legacy route ---------------------------------------------------------------------------


def legacy(answer):
    """Insist on what every answer of the legacy route carries."""
    assert answer.headers["Deprecation"] == "@1795219200"
    assert answer.headers["Link"] == (
        '</api/v1/auth/external-auth/callback>; rel="successor-version"'
    )
    return answer


def test_either_route_finishes_what_either_began(make_app, rt, api, jane, fake):
    signs_in(legacy(come_back(api, fake.sign_in(start(api).url), LEGACY)))
    app = make_app(external_auth_legacy_callback=True, http_client=HttpClient(allow_loopback=True))
    other = ApiClient(app)
    answer = come_back(other, fake.sign_in(start(other).url))
    signs_in(answer)
    assert "Deprecation" not in answer.headers
    signs_in(legacy(come_back(other, fake.sign_in(start(other).url), LEGACY)))


def test_the_legacy_route_takes_the_key_in_any_case(api, jane, fake):
    path = "/auth/external-auth/oidc/%20CORP/callback"
    signs_in(come_back(api, fake.sign_in(start(api).url), path))


def test_an_unknown_kind_on_the_legacy_route_leaves_the_sign_in(api, jane, fake):
    started = start(api)
    parameters = fake.sign_in(started.url)
    path = "/auth/external-auth/saml/corp/callback"
    clears(legacy(fails(come_back(api, parameters, path), "not_found")), started.state)
    api._client.set_cookie(
        cookie_name(started.state), started.cookie, path="/api/v1/auth/external-auth"
    )
    signs_in(come_back(api, parameters))


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/auth/external-auth/github/corp/callback", REFUSED),
        ("/auth/external-auth/oidc/other/callback", REFUSED),
        ("/auth/external-auth/oidc/-/callback", "bad_request"),
    ],
)
def test_another_providers_callback_is_a_mix_up(rt, api, jane, fake, path, code):
    add_provider(rt, key="other")
    parameters = fake.sign_in(start(api).url)
    fails(come_back(api, parameters, path), code)
    assert fake.seen("/token") == []
    fails(come_back(api, parameters), REFUSED)


def test_a_lured_code_does_not_reach_the_provider_that_lured_it(rt, api, admin, fake, clock):
    """Mix-up: one provider sends the browser on to another, whose callback names itself."""
    add_provider(rt, fake)
    with FakeProvider(clock) as evil:
        add_provider(rt, evil, kind="generic_oauth2", key="evil")
        parameters = fake.sign_in(start(api, "generic_oauth2", "evil").url)
        fails(come_back(api, parameters | {"iss": fake.issuer}), REFUSED)
        assert evil.seen("/token") == []


@pytest.mark.parametrize("spelled", [lambda code: code, lambda code: f" {code.swapcase()}\t"])
def test_a_lured_code_signs_nobody_else_in(rt, app, api, jane, fake, corp, clock, spelled):
    """Mix-up with a provider that sends no `iss` (RFC 9700 §4.4), whose code is then injected.

    The luring provider sends its visitor on to the honest one with the nonce and the challenge of a
    sign-in that its owner has begun there. So the code fits that sign-in, and PKCE does not help.
    """
    attacker = ApiClient(app)
    waiting = start(attacker)
    with FakeProvider(clock) as evil:
        add_provider(rt, evil, kind="generic_oauth2", key="evil")
        lured = start(api, "generic_oauth2", "evil")
        code = fake.sign_in(waiting.url)["code"]
        fails(come_back(api, {"code": code, "state": lured.state}), REFUSED)
        [request] = evil.seen("/token")
        assert request.form["code"] == code
    injected = {"code": spelled(code), "state": waiting.state}
    fails(come_back(attacker, injected), REFUSED)
    assert fake.seen("/token") == []
    assert count(rt, LoginSession) == 0
    signs_in(sign_in(api, fake))


def test_a_code_that_was_sent_to_nobody_is_still_good(rt, api, jane, fake):
    """Who has no sign-in under way cannot use anybody's code up."""
    started = start(api)
    parameters = fake.sign_in(started.url)
    fails(come_back(api, parameters | {"state": "another"}), REFUSED)
    fails(come_back(api.stranger(), parameters), REFUSED)
    signs_in(come_back(api, parameters))


@pytest.mark.parametrize(("code", "is_taken"), [("x" * 15, True), ("x" * 16, False)])
def test_a_code_of_few_characters_can_come_from_two_providers_by_chance(rt, code, is_taken):
    assert [service.claim_code(rt, code, provider_id) for provider_id in (1, 1)] == [True, True]
    assert service.claim_code(rt, code, 2) is is_taken


@pytest.mark.parametrize("code", ["\x00", "a\nb", "é", "\u212a"])
def test_what_can_be_no_code_is_sent_to_nobody(rt, api, jane, fake, code):
    """RFC 6749, appendix A.11."""
    fails(come_back(api, {"code": code, "state": start(api).state}), REFUSED)
    assert fake.seen("/token") == []


def test_the_legacy_route_says_so_when_it_refuses(make_app, corp):
    api = ApiClient(make_app(anonymous_bucket=Bucket(per_second=0.001, burst=1)))
    legacy(come_back(api, {}, LEGACY))
    legacy(come_back(api, {}, LEGACY)).fails(429, "rate_limited")


# --- odds and ends -------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/auth/external-auth/callback", LEGACY])
def test_a_look_at_the_link_uses_nothing_up(api, jane, fake, path):
    parameters = fake.sign_in(start(api).url)
    query = "&".join(f"{name}={value}" for name, value in parameters.items())
    answer = api.call("HEAD", f"{path}?{query}")
    assert (answer.status, location(answer)) == (302, "/login")
    assert answer.set_cookies == {}
    signs_in(come_back(api, parameters))


@pytest.mark.parametrize("text", ["\x00", "\ud800", "x" * 9000, "ü", "%", "' OR 1=1"])
def test_any_text_is_answered_by_a_redirect(api, jane, text):
    for name in ("state", "code", "error", "iss"):
        query = {name: text.encode("utf-8", "surrogatepass")}
        fails(come_back(api, query), REFUSED)


def test_a_failed_sign_in_is_logged_without_its_secrets(app, api, jane, fake, caplog):
    logging.getLogger().addHandler(caplog.handler)
    caplog.set_level(logging.DEBUG)
    fake.claims["aud"] = "other"
    started = start(api)
    parameters = fake.sign_in(started.url)
    fails(come_back(api, parameters), REFUSED)
    logging.getLogger().removeHandler(caplog.handler)
    assert "an external sign-in failed" in caplog.text
    secrets = [*parameters.values(), started.cookie, started.query["nonce"], fake.client_secret]
    assert [secret for secret in secrets if secret in caplog.text] == []


def test_what_a_provider_fails_at_is_counted_by_provider(api, jane, corp, fake):
    def counted():
        labels = {"kind": corp.provider_kind, "provider": corp.key}
        return REGISTRY.get_sample_value("external_auth_failures_total", labels) or 0

    before = counted()
    come_back(api, {"error": "access_denied"})
    come_back(api, {"state": start(api).state, "error": "access_denied"})
    signs_in(come_back(api, fake.sign_in(start(api).url)))
    assert counted() == before
    fake.claims["aud"] = "other"
    fails(come_back(api, fake.sign_in(start(api).url)), REFUSED)
    assert counted() == before + 1
    come_back(api, {"state": start(api).state, "error": "invalid_scope"})
    assert counted() == before + 2


def test_a_database_that_fails_is_told_in_one_line(api, jane, fake, caplog, monkeypatch):
    logging.getLogger().addHandler(caplog.handler)
    caplog.set_level(logging.WARNING)
    lost = OperationalError("SELECT secret", {}, Exception())
    monkeypatch.setattr(linking, "resolve", Mock(side_effect=lost))
    answer = come_back(api, fake.sign_in(start(api).url))
    logging.getLogger().removeHandler(caplog.handler)
    assert location(answer) == "/login?external_auth=error"
    assert "(database.error)" in caplog.text
    assert [r.name for r in caplog.records if r.exc_info] == []
    assert "SELECT secret" not in caplog.text


def test_the_account_is_read_anew(rt, api, fake, corp, user):
    """What the account looks like counts when the browser is back, not when it left."""
    parameters = fake.sign_in(start(api).url)
    owner = make_user(rt, email="other@example.com")
    link(rt, owner, corp, subject=SUBJECT, identity_namespace=fake.issuer)
    signs_in(come_back(api, parameters))
    assert api.me().ok()["id"] == owner.id
    assert PERSON["email"] != owner.email
