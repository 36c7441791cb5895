"""An account with an authenticator app."""

import pytest

from tests.support.challenge import give_totp


@pytest.fixture
def enabled(rt, user, clock):
    """`user`'s authenticator app and recovery codes."""
    return give_totp(rt, user, clock)
