"""Against a real, certified provider: npm's oidc-provider."""

from collections.abc import Callable
from dataclasses import replace
from typing import cast

import pytest

from app.core.clock import SystemClock
from app.core.http_client import HttpClient
from app.core.runtime import Runtime
from app.external_auth import drivers
from app.external_auth.drivers.driver import (
    Authorization,
    Callback,
    ExternalProfile,
    ProviderConfig,
)
from app.external_auth.errors import ProviderRejected
from app.external_auth.models import ProviderKind
from tests.external_auth.drivers.conftest import Surroundings
from tests.support.oidc_provider import CALLBACK, PUBLIC_CLIENT_ID, OidcProvider, parameters

REDIRECT_URI = f"http://localhost{CALLBACK}"


@pytest.fixture
def provider(certified_provider: OidcProvider) -> ProviderConfig:
    return ProviderConfig(
        id=1,
        key="certified",
        provider_kind=ProviderKind.OIDC,
        client_id=certified_provider.client_id,
        client_secret=certified_provider.client_secret,
        scopes="openid profile email",
        issuer_url=certified_provider.issuer,
    )


@pytest.fixture
def driver_of() -> Callable[[ProviderConfig], drivers.Driver]:
    """Return a function that makes a driver; all of them share what was fetched."""
    clock = SystemClock()
    rt = Surroundings(HttpClient(allow_loopback=True, clock=clock), clock)
    return lambda provider: drivers.of(cast(Runtime, rt), provider)


@pytest.fixture
def driver(driver_of, provider) -> drivers.Driver:
    return driver_of(provider)


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


def test_a_sign_in(certified_provider, provider, driver):
    callback = came_back(certified_provider, driver.authorize(REDIRECT_URI))
    assert driver.identify(callback) == ExternalProfile(
        namespace=certified_provider.issuer,
        subject="alice",
        email="alice@example.test",
        email_verified=True,
        display_name="Alice Example",
        preferred_username="alice",
    )


def test_an_unverified_address(certified_provider, provider, driver):
    authorization = driver.authorize(REDIRECT_URI)
    callback = came_back(certified_provider, authorization, "unverified-bob")
    assert driver.identify(callback).email_verified is False


def test_a_public_client(certified_provider, provider, driver_of):
    public = replace(provider, client_id=PUBLIC_CLIENT_ID, client_secret=None)
    driver = driver_of(public)
    callback = came_back(certified_provider, driver.authorize(REDIRECT_URI))
    assert driver.identify(callback).subject == "alice"


def test_a_code_works_once(certified_provider, provider, driver):
    callback = came_back(certified_provider, driver.authorize(REDIRECT_URI))
    driver.identify(callback)
    with pytest.raises(ProviderRejected):
        driver.identify(callback)


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
def test_whatever_is_wrong_nobody_is_signed_in(certified_provider, provider, driver, wrong):
    callback = came_back(certified_provider, driver.authorize(REDIRECT_URI))
    with pytest.raises(ProviderRejected):
        driver.identify(replace(callback, **wrong))


def test_a_wrong_secret(certified_provider, provider, driver, driver_of):
    callback = came_back(certified_provider, driver.authorize(REDIRECT_URI))
    with pytest.raises(ProviderRejected):
        driver_of(replace(provider, client_secret="wrong" * 10)).identify(callback)


def test_two_sign_ins_of_one_browser_do_not_mix(certified_provider, provider, driver):
    first, second = (driver.authorize(REDIRECT_URI) for _ in range(2))
    one, other = came_back(certified_provider, first), came_back(certified_provider, second)
    with pytest.raises(ProviderRejected):
        driver.identify(replace(one, code=other.code))
    assert driver.identify(other).subject == "alice"


def test_a_test_of_the_provider(certified_provider, provider, driver):
    result = driver.test()
    assert result.issuer == certified_provider.issuer
    assert (result.jwks_key_count or 0) >= 1
