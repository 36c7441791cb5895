"""An account with an authenticator app, where browsers may be remembered for thirty days."""

import pytest

from tests.support.challenge import give_totp
from tests.support.external import add_provider
from tests.support.factories import configure
from tests.support.fake_provider import FakeProvider

MONTH = 30 * 86_400


@pytest.fixture
def enabled(rt, user, clock):
    """`user`'s authenticator app and recovery codes."""
    return give_totp(rt, user, clock)


@pytest.fixture
def trusting(rt):
    configure(rt, auth_mfa_trusted_device_secs=MONTH)


@pytest.fixture
def remembered(api, user, enabled, trusting):
    """`user`'s browser, signed in and remembered."""
    trust(api, user, enabled)
    return api


@pytest.fixture
def corp(rt, clock):
    """A provider on loopback, as it is set up here, and as it is there."""
    configure(rt, public_site_url=["http://localhost"])
    rt.http_client.allow_loopback = True
    with FakeProvider(clock) as fake:
        yield add_provider(rt, fake), fake
    rt.http_client.allow_loopback = False


def trust(client, user, enabled, **body):
    """Sign in with both steps and have the browser remembered."""
    token = client.login(user).ok()["flow_token"]
    said = {"flow_token": token, "method": "totp", "code": enabled.app.wait()}
    answer = client.post("/auth/mfa/challenge/verify", {**said, "remember_device": True, **body})
    answer.ok()
    return answer


def is_asked(client, user, password=None):
    """Return whether the account is asked for its second step in this browser."""
    return client.login(user, password).ok()["status"] == "mfa_required"
