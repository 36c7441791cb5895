"""A site with an address, and an account with a passkey."""

import pytest
from flask import Flask

from app.core.runtime import Runtime
from tests.support.api import ORIGIN, ApiClient
from tests.support.factories import configure, make_user
from tests.support.passkeys import Authenticator, register


@pytest.fixture
def site(rt: Runtime) -> None:
    """The site is where the tests' browser is."""
    configure(rt, public_site_url=[ORIGIN])


@pytest.fixture
def device() -> Authenticator:
    """An authenticator that syncs its passkeys and does not count signatures, as most do."""
    return Authenticator()


@pytest.fixture
def passkey(site: None, signed_in: ApiClient, device: Authenticator) -> dict:
    """`user`'s passkey on `device`; `signed_in` still is."""
    return register(signed_in, device).ok()


@pytest.fixture
def stranger(signed_in: ApiClient) -> ApiClient:
    """A client that is not signed in."""
    return signed_in.stranger()


@pytest.fixture
def other(rt: Runtime, app: Flask) -> ApiClient:
    """Another account's client."""
    client = ApiClient(app)
    client.login(make_user(rt)).ok()
    return client
