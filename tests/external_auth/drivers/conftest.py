"""What a driver needs of the runtime, without a database."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

import pytest

from app.core.clock import Clock
from app.core.http_client import HttpClient, ResponseLimits
from app.core.runtime import Runtime
from app.external_auth.drivers import DRIVERS
from app.external_auth.drivers.driver import (
    Authorization,
    Callback,
    ExternalProfile,
)
from app.external_auth.models import Provider, ProviderKind
from tests.support.clock import FakeClock
from tests.support.fake_provider import FakeProvider

REDIRECT_URI = "https://files.example.com/api/v1/auth/external-auth/callback"


@dataclass
class Surroundings:
    """The part of the runtime that drivers touch."""

    http_client: HttpClient
    clock: Clock


def driver_of(rt: Runtime, provider: Provider) -> Any:
    """Return a driver for a provider whose secret is in clear."""
    return DRIVERS[provider.provider_kind](rt, provider, provider.client_secret)


@dataclass(frozen=True)
class Client:
    """A registered provider, and the driver that speaks to it."""

    rt: Runtime
    config: Provider
    provider: FakeProvider

    @property
    def driver(self) -> Any:
        return driver_of(self.rt, self.config)

    def but(self, **stored: Any) -> "Client":
        """Return it with other values stored."""
        kept = {name: value for name, value in vars(self.config).items() if name[0] != "_"}
        return replace(self, config=Provider(**(kept | stored)))

    def authorize(self) -> Authorization:
        return self.driver.authorize(REDIRECT_URI)

    def callback(self, authorization: Authorization, **overrides: Any) -> Callback:
        """Sign Jane in, and return what the browser comes back with."""
        parameters = self.provider.sign_in(authorization.url)
        assert parameters["state"] == authorization.state
        values: dict[str, Any] = {
            "code": parameters["code"],
            "redirect_uri": REDIRECT_URI,
            "nonce": authorization.nonce,
            "pkce_verifier": authorization.pkce_verifier,
        }
        return Callback(**(values | overrides))

    def identify(self, callback: Callback) -> ExternalProfile:
        return self.driver.identify(callback)

    def sign_in(self, **overrides: Any) -> ExternalProfile:
        return self.identify(self.callback(self.authorize(), **overrides))


# For tests that wait until the time is over.
IMPATIENT = ResponseLimits(seconds=0.6)


@pytest.fixture
def rt(clock: FakeClock) -> Runtime:
    """Allows loopback."""
    http_client = HttpClient(allow_loopback=True, clock=clock)
    return cast(Runtime, Surroundings(http_client, clock))


@pytest.fixture
def provider(fake_provider: FakeProvider) -> FakeProvider:
    return fake_provider


@pytest.fixture
def client(rt: Runtime, provider: FakeProvider) -> Callable[..., Client]:
    """Register the provider as of a kind; keywords replace what is stored of it."""

    def register(kind: ProviderKind = ProviderKind.OIDC, **stored: Any) -> Client:
        values: dict[str, Any] = {
            "id": 1,
            "key": "main",
            "provider_kind": kind,
            "client_id": provider.client_id,
            "client_secret": provider.client_secret,
            "options": {},
        }
        return Client(rt, Provider(**(values | stored)), provider)

    return register


@pytest.fixture(autouse=True)
def whatever_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """An application that was made before, by another test, may have silenced the log."""
    caplog.set_level(logging.INFO)
