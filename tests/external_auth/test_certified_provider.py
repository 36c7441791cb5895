"""The whole way with a real, certified OpenID provider on loopback."""

import pytest

from app.core.clock import Clock
from app.core.http_client import HttpClient
from app.external_auth.models import Provider
from app.users.models import User
from tests.support.api import ORIGIN, ApiClient
from tests.support.external import (
    add_provider,
    asks_for_address,
    change_provider,
    come_back,
    cookie_name,
    fails,
    links,
    signs_in,
    start,
    told,
)
from tests.support.factories import configure, count, make_user
from tests.support.oidc_provider import OidcProvider, parameters

REFUSED = "auth.credentials_failed"


@pytest.fixture
def app(make_app):
    """Real time: the provider does not know the test's clock."""
    app = make_app(clock=Clock(), http_client=HttpClient(allow_loopback=True))
    configure(app.extensions["gatehouse"], public_site_url=[ORIGIN])
    return app


@pytest.fixture
def certified(rt, admin, certified_provider: OidcProvider) -> Provider:
    return add_provider(
        rt,
        issuer_url=certified_provider.issuer,
        client_id=certified_provider.client_id,
        client_secret=certified_provider.client_secret,
    )


def brought_back(client, provider, name="alice", **body):
    """Begin a sign-in and go through it at the provider; return the callback's parameters."""
    return parameters(provider.sign_in(start(client, **body).url, name))


def test_provisioning_logout_and_login_again(rt, api, certified, certified_provider):
    change_provider(rt, certified, auto_provision_enabled=True)
    for _ in range(2):
        back = brought_back(api, certified_provider, return_path="/files")
        signs_in(come_back(api, back), "/files")
        me = api.me().ok()
        api.post("/auth/logout").ok()
        api.me().fails(401, "auth.token_missing")
    assert me["email_verified"] is True
    assert count(rt, User) == 2
    [row] = links(rt)
    assert (row.identity_namespace, row.subject) == (certified_provider.issuer, "alice")


def test_linking_by_the_verified_address(rt, api, certified, certified_provider):
    change_provider(rt, certified, auto_provision_enabled=True)
    signs_in(come_back(api, brought_back(api, certified_provider)))
    address = api.me().ok()["email"]
    owner = make_user(rt, email=address.replace("alice", "bob"))
    change_provider(rt, certified, auto_link_verified_email_enabled=True)
    other = ApiClient(api.app)
    signs_in(come_back(other, brought_back(other, certified_provider, "bob")))
    assert other.me().ok()["id"] == owner.id


def test_linking_by_password(rt, api, certified, certified_provider):
    owner = make_user(rt)
    flow_token = asks_for_address(come_back(api, brought_back(api, certified_provider)))
    body = {"flow_token": flow_token, "identifier": owner.username, "password": owner.password}
    api.post("/auth/external-auth/password-link", body).ok()
    stranger = ApiClient(api.app)
    signs_in(come_back(stranger, brought_back(stranger, certified_provider)))
    assert stranger.me().ok()["id"] == owner.id


def test_a_code_for_another_verifier_is_refused(rt, api, certified, certified_provider):
    stolen = brought_back(ApiClient(api.app), certified_provider)["code"]
    mine = brought_back(api, certified_provider)
    fails(come_back(api, mine | {"code": stolen}), REFUSED)
    assert links(rt) == []


def test_a_replayed_code_is_refused(rt, api, certified, certified_provider):
    started = start(api)
    back = parameters(certified_provider.sign_in(started.url))
    asks_for_address(come_back(api, back))
    path = "/api/v1/auth/external-auth"
    api._client.set_cookie(cookie_name(started.state), started.cookie, path=path)
    fails(come_back(api, back), REFUSED)
    other = brought_back(api, certified_provider)
    fails(come_back(api, other | {"code": back["code"]}), REFUSED)


def test_the_issuer_it_announces_must_come_back(api, certified, certified_provider):
    back = brought_back(api, certified_provider)
    fails(come_back(api, {name: back[name] for name in ("code", "state")}), REFUSED)
    back = brought_back(api, certified_provider)
    fails(come_back(api, back | {"iss": "http://evil.example"}), REFUSED)


def test_the_command_line_tests_it(line, certified, certified_provider):
    result = line.json("external-auth", "test", "corp")
    assert result["issuer"] == certified_provider.issuer
    assert result["jwks_key_count"] >= 1
    assert all(check["success"] for check in result["checks"])


def test_linking_while_signed_in_and_confirming(rt, signed_in, user, certified, certified_provider):
    answer = come_back(signed_in, brought_back(signed_in, certified_provider, intent="link"))
    assert told(answer, "/") == {"external_auth": "linked"}
    assert [(row.user_id, row.subject) for row in links(rt)] == [(user.id, "alice")]
    for name, expected in (
        ("alice", {"external_auth": "confirmed"}),
        ("bob", {"external_auth": "error", "code": "auth.session_user_mismatch"}),
    ):
        back = brought_back(signed_in, certified_provider, name, intent="confirm")
        assert told(come_back(signed_in, back), "/") == expected
