"""Honest refresh races and replays without a proxy, on several workers (decisions A6, E7)."""

import time
from contextlib import ExitStack, contextmanager

import psutil
import pytest

from app.serving.connection import KERNEL_TICK_SECONDS
from tests.support.factories import audit_rows, make_user
from tests.support.live import eventually


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


@pytest.fixture
def rivals(direct, owner):
    """Clients with the owner's cookies, not connected yet."""
    with ExitStack() as stack:
        clients = [stack.enter_context(direct.client()) for _ in range(16)]
        for client in clients:
            client.cookies = dict(owner.cookies)
        yield clients


def insist_on_one_winner(direct, owner, clients, answers):
    """One success, nothing but losers beside it, and a session that goes on."""
    codes = sorted(answer.code for answer in answers)
    assert codes == ["auth.refresh_token_stale"] * 15 + ["success"]
    for client, answer in zip(clients, answers, strict=True):
        if answer.status == 200:
            winner = client
        else:
            assert answer.set_cookies == {}
    owner.me().ok()
    winner.me().ok()
    winner.refresh().ok()
    assert audit_rows(direct.rt, "user_refresh_token_reuse_detected") == []


@contextmanager
def standing_still(direct):
    """Stop the workers meanwhile.

    Else it is up to the client's own luck on a busy machine whether the last request is sent
    before the first one's exchange is committed, which is what makes the race an honest one.
    """
    workers = [psutil.Process(pid) for pid in direct.workers()]
    for worker in workers:
        worker.suspend()
    eventually(
        lambda: all(worker.status() == psutil.STATUS_STOPPED for worker in workers),
        "the workers to stand still",
    )
    try:
        yield
        time.sleep(3 * KERNEL_TICK_SECONDS)  # so exactly the kernel tells when something arrived
    finally:
        for worker in workers:
            worker.resume()


@pytest.mark.parametrize("attempt", range(5))
def test_of_sixteen_refreshes_over_new_connections_one_succeeds_and_the_session_lives(
    direct, owner, rivals, attempt
):
    with standing_still(direct):
        for client in rivals:
            client.connect()
        receive = [client.send("POST", "/auth/refresh") for client in rivals]
    insist_on_one_winner(direct, owner, rivals, [answer() for answer in receive])


@pytest.mark.parametrize("attempt", range(5))
def test_of_sixteen_refreshes_over_connections_opened_before_one_succeeds_and_the_session_lives(
    direct, owner, rivals, attempt
):
    for client in rivals:
        client.connect()
    with standing_still(direct):
        receive = [client.send("POST", "/auth/refresh") for client in rivals]
    insist_on_one_winner(direct, owner, rivals, [answer() for answer in receive])


@pytest.mark.parametrize("attempt", range(5))
def test_of_sixteen_refreshes_over_connections_in_use_one_succeeds_and_the_session_lives(
    direct, owner, rivals, attempt
):
    for client in rivals:
        client.get("/health")
    with standing_still(direct):
        receive = [client.send("POST", "/auth/refresh") for client in rivals]
    insist_on_one_winner(direct, owner, rivals, [answer() for answer in receive])


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
