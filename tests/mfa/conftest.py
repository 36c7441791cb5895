"""An account with an authenticator app."""

import pytest

from tests.support.api import ApiClient
from tests.support.authenticator import EnabledTotp, enable_totp
from tests.support.clock import FakeClock


@pytest.fixture
def enabled(signed_in: ApiClient, clock: FakeClock) -> EnabledTotp:
    """`user`'s second factors; `signed_in` still is."""
    return enable_totp(signed_in, clock)
