"""Replays of a refresh token without a proxy, on several workers."""

import pytest

from tests.support.factories import make_user

pytestmark = pytest.mark.both_databases


@pytest.fixture
def user(direct):
    # Without an administrator an installation with users is broken.
    make_user(direct.rt, username="root", role="admin")
    return make_user(direct.rt)


@pytest.fixture
def owner(direct, user):
    """A client that is signed in."""
    with direct.client() as client:
        client.login(user).ok()
        yield client


def test_a_replay_right_after_on_the_same_connection_is_noticed_every_time(direct, user, owner):
    for _ in range(20):
        owner.login(user).ok()
        spent = dict(owner.cookies)
        owner.refresh().ok()
        owner.cookies = spent
        owner.refresh().fails(401, "auth.refresh_token_reuse_detected")


def test_a_replay_right_after_on_a_new_connection_is_noticed_every_time(direct, user, owner):
    for _ in range(20):
        owner.login(user).ok()
        with direct.client() as thief:
            thief.cookies = dict(owner.cookies)
            owner.refresh().ok()
            thief.refresh().fails(401, "auth.refresh_token_reuse_detected")
        owner.me().fails(401, "auth.token_invalid")
