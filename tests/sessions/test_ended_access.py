"""What ends access ends it with the next request, on every instance.

Claims that were verified before are kept, for both instances alike, as they are of one process.
"""

import base64
import json

import pytest

from app.crypto import keyring
from app.web import runtime as web_runtime
from tests.support.api import ApiClient
from tests.support.factories import change_user, make_user

pytestmark = pytest.mark.both_databases


@pytest.fixture
def instances(make_app):
    """Two, on the same stores and the same key file."""
    return [make_app(secret_keys=()) for _ in range(2)]


@pytest.fixture
def rt(instances):
    return web_runtime.of(instances[0])


@pytest.fixture
def user(rt):
    return make_user(rt)


@pytest.fixture
def clients(instances, user):
    """One session as each instance knows it, which both have checked before."""
    first, second = (ApiClient(app) for app in instances)
    first.login(user).ok()
    second.set_cookie("service_access", first.access_token)
    for client in (first, second, first, second):
        client.me().ok()
    return first, second


def test_a_revoked_session(instances, clients, user):
    other = ApiClient(instances[1])
    other.login(user).ok()
    [ended] = [one["id"] for one in other.get("/auth/sessions").ok() if not one["is_current"]]
    other.delete(f"/auth/sessions/{ended}").ok()
    for client in clients:
        client.me().fails(401, "auth.token_invalid")
    other.me().ok()


def test_a_disabled_account(rt, clients, user):
    change_user(rt, user, status="disabled")
    for client in clients:
        client.me().fails(403, "auth.account_disabled")
    change_user(rt, user, status="active")
    for client in clients:
        client.me().ok()


def test_an_expired_token(clients, clock):
    clock.advance(minutes=15, seconds=6)
    for client in clients:
        client.me().fails(401, "auth.token_expired")


@pytest.mark.parametrize("change", ["another secret", "another key"])
def test_a_changed_key(rt, clients, clock, change):
    file = rt.config.instance / "keys.json"
    keys = json.loads(file.read_text())
    [key] = keys["keys"]
    if change == "another secret":
        key["secret"] = base64.urlsafe_b64encode(bytes(32)).decode()
    else:
        key["id"] = "f" * 12
    file.write_text(json.dumps(keys))
    clock.advance(seconds=keyring.RECHECK_SECONDS + 0.1)
    for client in clients:
        client.me().fails(401, "auth.token_invalid")


def test_a_key_that_was_retired_long_ago(rt, clients, clock):
    rt.keyring.rotate()
    for client in clients:
        client.me().ok()
    clock.advance(days=1, seconds=1)
    for client in clients:
        client.me().fails(401, "auth.token_invalid")
