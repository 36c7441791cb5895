"""Every variant of a real, certified provider: npm's oidc-provider."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest

from app.core.clock import Clock
from app.core.http_client import HttpClient
from app.core.runtime import Runtime
from app.external_auth.drivers.driver import (
    Authorization,
    Callback,
    Driver,
    ExternalProfile,
)
from app.external_auth.errors import ProviderRejected
from app.external_auth.models import Provider, ProviderKind, TokenAuth
from tests.external_auth.drivers import conftest
from tests.external_auth.drivers.conftest import Surroundings
from tests.support.oidc_provider import (
    CALLBACK,
    POST_CLIENT_ID,
    PUBLIC_CLIENT_ID,
    OidcProvider,
    parameters,
)

pytestmark = pytest.mark.soak

REDIRECT_URI = f"http://localhost{CALLBACK}"


def registered(certified_provider: OidcProvider, **stored: Any) -> Provider:
    values = {
        "id": 1,
        "key": "certified",
        "provider_kind": ProviderKind.OIDC,
        "client_id": certified_provider.client_id,
        "client_secret": certified_provider.client_secret,
        "scopes": "openid profile email",
        "issuer_url": certified_provider.issuer,
    }
    return Provider(**(values | stored))


@pytest.fixture
def driver_of(certified_provider) -> Callable[..., Driver]:
    """Return a function that makes a driver; all of them share what was fetched."""
    clock = Clock()
    rt = cast(Runtime, Surroundings(HttpClient(allow_loopback=True, clock=clock), clock))
    return lambda **stored: conftest.driver_of(rt, registered(certified_provider, **stored))


@pytest.fixture
def driver(driver_of) -> Driver:
    return driver_of()


def came_back(
    certified_provider: OidcProvider, authorization: Authorization, name: str = "alice"
) -> Callback:
    """Sign in, and return what the browser came back with."""
    query = parameters(certified_provider.sign_in(authorization.url, name))
    assert query["state"] == authorization.state
    return Callback(
        code=query["code"],
        redirect_uri=REDIRECT_URI,
        nonce=authorization.nonce,
        pkce_verifier=authorization.pkce_verifier,
        issuer=query["iss"],
    )


def test_a_sign_in(certified_provider, driver):
    callback = came_back(certified_provider, driver.authorize(REDIRECT_URI))
    assert driver.identify(callback) == ExternalProfile(
        namespace=certified_provider.issuer,
        subject="alice",
        email="alice@example.test",
        email_verified=True,
        display_name="Alice Example",
        preferred_username="alice",
    )


def test_a_client_that_sends_its_secret_in_the_form(certified_provider, driver_of):
    driver = driver_of(client_id=POST_CLIENT_ID, token_auth=TokenAuth.POST)
    callback = came_back(certified_provider, driver.authorize(REDIRECT_URI))
    assert driver.identify(callback).subject == "alice"


@pytest.mark.parametrize("token_auth", [TokenAuth.BASIC, TokenAuth.POST])
def test_an_expired_secret_is_logged_as_such(certified_provider, driver_of, caplog, token_auth):
    driver = driver_of(client_secret="expired", token_auth=token_auth)
    callback = came_back(certified_provider, driver.authorize(REDIRECT_URI))
    with pytest.raises(ProviderRejected):
        driver.identify(callback)
    assert "certified (oidc): status 401: invalid_client" in caplog.text


def test_without_a_scope_for_it_nobody_tells_an_address(certified_provider, driver_of, caplog):
    driver = driver_of(scopes="openid")
    callback = came_back(certified_provider, driver.authorize(REDIRECT_URI))
    found = driver.identify(callback)
    assert (found.subject, found.email, found.display_name) == ("alice", None, None)
    assert caplog.text == ""


def test_an_unverified_address(certified_provider, driver):
    authorization = driver.authorize(REDIRECT_URI)
    callback = came_back(certified_provider, authorization, "unverified-bob")
    assert driver.identify(callback).email_verified is False


def test_a_public_client(certified_provider, driver_of):
    driver = driver_of(client_id=PUBLIC_CLIENT_ID, client_secret=None)
    callback = came_back(certified_provider, driver.authorize(REDIRECT_URI))
    assert driver.identify(callback).subject == "alice"


@pytest.mark.parametrize(
    "wrong",
    [
        {"pkce_verifier": "x" * 43},
        {"nonce": "another"},
        {"nonce": None},
        {"code": "unknown"},
        {"redirect_uri": f"http://localhost:81{CALLBACK}"},
        {"issuer": None},
        {"issuer": "https://other.example.com"},
    ],
    ids=lambda wrong: f"{next(iter(wrong))}={next(iter(wrong.values()))}",
)
def test_whatever_is_wrong_nobody_is_signed_in(certified_provider, driver, wrong):
    callback = came_back(certified_provider, driver.authorize(REDIRECT_URI))
    with pytest.raises(ProviderRejected):
        driver.identify(replace(callback, **wrong))


def test_a_test_of_the_provider(certified_provider, driver):
    result = driver.test()
    assert result["issuer"] == certified_provider.issuer
    assert result["jwks_key_count"] >= 1
    assert {check["name"] for check in result["checks"]} == {"discovery", "jwks"}
