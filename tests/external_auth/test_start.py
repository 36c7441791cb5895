"""POST /auth/external-auth/{kind}/{provider}/start, and the list of providers."""

import re
from urllib.parse import urlsplit

import pytest
from redis import Redis

from app.core.http_client import HttpClient
from tests.support.api import BASE, ORIGIN, ApiClient
from tests.support.external import (
    CALLBACK,
    add_provider,
    change_provider,
    come_back,
    cookie_name,
    delete_provider,
    fails,
    start,
)
from tests.support.factories import configure
from tests.support.provider_faults import DISCOVERY_FAULTS

PATH = "/auth/external-auth/oidc/corp/start"
PENDING = "gatehouse:external-sign-in:*"


# --- providers -------------------------------------------------------------------------------


def test_without_providers_the_list_is_empty(api):
    assert api.get("/auth/external-auth/providers").ok() == []


def test_enabled_providers_are_listed_by_name_and_without_secrets(rt, api):
    add_provider(
        rt, key="zulu", display_name="Alpha", icon_url="/icons/a.svg", client_secret="hidden"
    )
    add_provider(rt, key="beta", display_name="beta")
    add_provider(rt, kind="github", key="hub", display_name="GitHub")
    add_provider(rt, kind="qq", key="away", display_name="QQ", enabled=False)
    add_provider(rt, key="alpha", display_name="Alpha")
    listed = api.get("/auth/external-auth/providers").ok()
    assert [item["key"] for item in listed] == ["zulu", "alpha", "hub", "beta"]
    assert listed[0] == {
        "key": "zulu",
        "kind": "oidc",
        "display_name": "Alpha",
        "icon_url": "/icons/a.svg",
    }


def test_the_list_does_not_depend_on_set_up_and_switches(rt, api):
    add_provider(rt)
    configure(rt, auth_password_login_enabled=False, auth_passkey_login_enabled=False)
    assert len(api.get("/auth/external-auth/providers").ok()) == 1


# --- what the provider is asked --------------------------------------------------------------


def test_openid_connect_is_asked_with_nonce_and_proof_key(api, fake, corp):
    started = start(api)
    assert started.answer.data == {"authorization_url": started.url}
    assert started.url.startswith(f"{fake.issuer}/authorize?")
    query = started.query
    assert query | {"state": "", "nonce": "", "code_challenge": ""} == {
        "response_type": "code",
        "client_id": fake.client_id,
        "redirect_uri": f"{ORIGIN}{BASE}{CALLBACK}",
        "scope": "openid profile email",
        "state": "",
        "nonce": "",
        "code_challenge": "",
        "code_challenge_method": "S256",
    }
    assert re.fullmatch(r"[\w-]{22}", query["state"])
    assert re.fullmatch(r"[\w-]{22}", query["nonce"])
    assert re.fullmatch(r"[\w-]{43}", query["code_challenge"])


def test_oauth_is_asked_without_nonce(rt, api, fake):
    add_provider(rt, fake, kind="generic_oauth2", authorization_url=f"{fake.issuer}/a?tenant=7")
    started = start(api, "generic_oauth2")
    assert started.query["tenant"] == "7"
    assert "nonce" not in started.query
    assert re.fullmatch(r"oauth2_[0-9a-f]{32}", started.state)
    assert started.query["code_challenge_method"] == "S256"


def test_the_old_name_of_generic_oauth2_leads_there_too(rt, api, fake):
    add_provider(rt, fake, kind="generic_oauth2")
    assert start(api, "oauth2").url.startswith(f"{fake.issuer}/authorize?")


def test_a_key_is_matched_without_case_and_space(api, corp):
    api.post("/auth/external-auth/oidc/%20CORP%20/start", {}).ok()


def test_the_answer_ties_the_sign_in_to_the_browser(rt, api, corp):
    started = start(api)
    [name] = started.answer.set_cookies
    assert name == cookie_name(started.state)
    cookie = started.answer.set_cookies[name]
    assert re.fullmatch(r"[\w-]{43}", cookie.value)
    lasting = {n: v for n, v in cookie.attributes.items() if n != "expires"}  # as "max-age" says
    assert lasting == {
        "path": "/api/v1/auth/external-auth",
        "max-age": "300",
        "httponly": True,
        "samesite": "Lax",
    }
    assert cookie.value not in started.answer.text
    configure(rt, auth_cookie_secure=True, auth_external_flow_ttl_secs=60)
    started = start(api)
    attributes = started.answer.set_cookies[cookie_name(started.state)].attributes
    assert attributes["secure"] is True
    assert attributes["max-age"] == "60"


def test_nothing_is_kept_that_would_finish_a_sign_in(rt, api, corp):
    started = start(api)
    [key] = rt.redis.client.keys(PENDING)
    kept = key + str(rt.redis.client.get(key))
    for secret in (started.state, started.query["nonce"], started.cookie, "verifier"):
        assert secret not in kept
    assert 300 < rt.redis.client.ttl(key) <= 361


# --- the address to come back to --------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("files.example", "https://files.example"),
        ("www.files.example:8443", "https://www.files.example:8443"),
        ("evil.example", "https://files.example"),
        ("WWW.files.example:8443", "https://www.files.example:8443"),
        ("www.files.example", "https://files.example"),
        ("[", "https://files.example"),
    ],
)
def test_the_browser_comes_back_to_the_site_it_is_at(rt, api, corp, host, origin):
    sites = ["https://files.example", "https://www.files.example:8443"]
    configure(rt, public_site_url=sites)
    told = {"HTTP_HOST": host, "wsgi.url_scheme": "https"}
    answer = api.post(PATH, {}, environ_overrides=told)
    url = answer.ok()["authorization_url"]
    assert f"redirect_uri={origin.replace('://', '%3A%2F%2F').replace(':8443', '%3A8443')}" in url


def test_the_legacy_address_can_be_asked_for(make_app, rt, fake, corp):
    app = make_app(external_auth_legacy_callback=True, http_client=HttpClient(allow_loopback=True))
    started = start(ApiClient(app))
    path = urlsplit(started.query["redirect_uri"]).path
    assert path == f"{BASE}/auth/external-auth/oidc/corp/callback"


# --- refusals, in their order -----------------------------------------------------------------


def test_refusals_come_in_their_order(rt, api, fake, corp, clock):
    """Everything is wrong at first; one thing after the other is put right."""
    configure(rt, public_site_url=[])
    change_provider(rt, corp, enabled=False)
    fake.metadata["issuer"] = "https://other.example.com"
    elsewhere = {"Origin": "https://evil.example"}
    nowhere = "/auth/external-auth/saml/-/start"
    api.post(nowhere, b"{", headers=elsewhere).fails(400, "bad_request")
    bad = {"return_path": "//evil.example"}
    api.post(nowhere, bad, headers=elsewhere).fails(403, "auth.request_origin_untrusted")
    api.post(nowhere, bad).fails(404, "not_found")
    api.post("/auth/external-auth/oidc/-/start", bad).fails(400, "bad_request")
    api.post("/auth/external-auth/oidc/other/start", bad).fails(404, "not_found")
    api.post("/auth/external-auth/github/corp/start", bad).fails(404, "not_found")
    api.post(PATH, bad).fails(403, "external_auth.provider_disabled")
    change_provider(rt, corp, enabled=True)
    clock.advance(seconds=1)
    assert "return_path" in api.post(PATH, bad).fails(400, "bad_request").json["msg"]
    code = "external_auth.callback_redirect_uri_required"
    assert "public_site_url" in api.post(PATH, {}).fails(400, code).json["msg"]
    configure(rt, public_site_url=[ORIGIN])
    answer = api.post(PATH, {}).fails(400, "bad_request")
    assert "OIDC discovery failed" in answer.json["msg"]
    assert answer.set_cookies == {}
    fake.metadata["issuer"] = fake.issuer
    api.post(PATH, {}).ok()


def test_a_provider_is_as_it_was_stored_at_most_a_second_ago(rt, api, fake, corp, clock):
    assert start(api).query["client_id"] == corp.client_id
    change_provider(rt, corp, client_id="new")
    clock.advance(seconds=1)
    assert start(api).query["client_id"] == "new"
    change_provider(rt, corp, enabled=False)
    clock.advance(seconds=1)
    api.post(PATH, {}).fails(403, "external_auth.provider_disabled")
    delete_provider(rt, corp)
    clock.advance(seconds=1)
    api.post(PATH, {}).fails(404, "not_found")
    add_provider(rt, fake, client_id="another")
    assert start(api).query["client_id"] == "another"


def test_what_can_be_no_key_is_refused_as_such(api, corp):
    for key in ("a", "-ab", "ab-", "a_b", "a.b", "ab" * 33, "%C3%BCber", "a%20b", "%2e%2e"):
        api.post(f"/auth/external-auth/oidc/{key}/start", {}).fails(400, "bad_request")


def test_an_unknown_kind_is_not_found(api, corp):
    for kind in ("OIDC", "saml", "generic-oauth2", "oauth", "%20oidc"):
        api.post(f"/auth/external-auth/{kind}/corp/start", {}).fails(404, "not_found")


def test_a_body_must_be_an_object(api, corp):
    for body in (None, b"", b"[]", b'"{}"', b"null", b'{"return_path": 7}'):
        api.post(PATH, body).fails(400, "bad_request")


@pytest.mark.parametrize("fault", ["another issuer", "document not JSON"])
def test_a_provider_that_describes_itself_wrongly_is_refused(rt, api, fake, corp, fault):
    DISCOVERY_FAULTS[fault](fake)
    answer = api.post(PATH, {}).fails(400, "bad_request")
    assert "OIDC discovery failed" in answer.json["msg"]
    assert answer.set_cookies == {}
    assert rt.redis.client.keys(PENDING) == []


def test_internal_addresses_are_not_asked_without_the_switch(make_app, corp, fake):
    api = ApiClient(make_app())
    answer = api.post(PATH, {}).fails(400, "bad_request")
    assert "OIDC discovery failed" in answer.json["msg"]
    assert fake.requests == []


def test_a_secret_nobody_can_read_is_told_apart(rt, api, corp):
    change_provider(rt, corp, client_secret="v1:gone:AAAA:AAAA")
    api.post(PATH, {}).fails(500, "config.error")


def test_missing_endpoints_are_a_fault_of_the_set_up(rt, api, fake):
    provider = add_provider(rt, fake, kind="generic_oauth2")
    change_provider(rt, provider, authorization_url=None)
    api.post("/auth/external-auth/generic_oauth2/corp/start", {}).fails(500, "config.error")


def test_endpoints_on_this_machine_are_one_too_without_the_switch(make_app, rt, fake, monkeypatch):
    """They may be stored. oauthlib refuses them by an error of its own, but for this variable."""
    add_provider(rt, fake, kind="generic_oauth2")
    monkeypatch.delenv("OAUTHLIB_INSECURE_TRANSPORT", raising=False)
    api = ApiClient(make_app(http_client=HttpClient(allow_loopback=False)))
    api.post("/auth/external-auth/generic_oauth2/corp/start", {}).fails(500, "config.error")


def test_without_redis_no_sign_in_begins(make_app, rt, fake, corp):
    app = make_app(
        redis=Redis.from_url("unix:///nowhere.sock"), http_client=HttpClient(allow_loopback=True)
    )
    api = ApiClient(app)
    api.post(PATH, {}).fails(503, "internal_server_error")
    assert len(api.get("/auth/external-auth/providers").ok()) == 1
    gone = {"state": "s", "code": "c"}
    api._client.set_cookie(cookie_name("s"), "b", path="/api/v1/auth/external-auth")
    fails(come_back(api, gone), None)
