"""Flows in Redis as such: whose end they are, and how long they are remembered."""

from datetime import timedelta

import pytest

from app.store.flow_store import EXPIRED_RETENTION, FlowState, FlowStore

MINUTES = timedelta(minutes=1)


@pytest.fixture
def flows(rt, clock):
    return FlowStore(rt.redis.breaker, clock, "test")


@pytest.fixture
def token(flows):
    return flows.open(1, {"a": 1}, 5 * MINUTES, "t_")


def test_a_flow_is_found_as_it_was_opened(flows, token, clock):
    flow = flows.find(token)
    assert (flow.data, flow.state, flow.attempts) == ({"a": 1}, FlowState.OPEN, 0)
    assert flow.expires_at == clock.now() + 5 * MINUTES
    assert flows.find(token + "0") is None


def test_of_two_attempts_one_uses_a_flow_up_however_often_it_asks(flows, token):
    flow = flows.find(token)
    assert flows.consume(flow, "first")
    assert not flows.consume(flow, "second")
    assert flows.consume(flow, "first")
    assert flows.is_consumed(flow)


def test_only_who_used_a_flow_up_opens_it_again(flows, token):
    flow = flows.find(token)
    flows.consume(flow, "first")
    flows.reopen(flow, "second")
    assert flows.is_consumed(flow)
    flows.reopen(flow, "first")
    assert flows.find(token).state is FlowState.OPEN
    assert flows.consume(flow, "second")
    flows.reopen(flow, "first")
    assert flows.is_consumed(flow)


def test_an_exhausted_flow_stays_so(flows, token):
    flow = flows.find(token)
    flows.exhaust(flow)
    assert not flows.consume(flow, "first")
    flows.reopen(flow, "first")
    assert flows.find(token).state is FlowState.EXHAUSTED
    assert flows.take_attempt(flow, "first", 5) == 0


def test_a_used_up_flow_is_not_exhausted(flows, token):
    flow = flows.find(token)
    flows.consume(flow, "first")
    flows.exhaust(flow)
    assert flows.is_consumed(flow)


def test_an_attempt_is_counted_once_however_often_it_asks(flows, token):
    flow = flows.find(token)
    numbers = [flows.take_attempt(flow, name, 2) for name in "aabbca"]
    assert numbers == [1, 1, 2, 2, 0, 1]
    assert flows.find(token).attempts == 2


def test_what_an_attempt_took_is_given_back_once(flows, token):
    flow = flows.find(token)
    for name in "ab":
        flows.take_attempt(flow, name, 5)
    for _ in range(3):
        flows.give_back(flow, "a")
    assert flows.find(token).attempts == 1
    assert flows.take_attempt(flow, "c", 5) == 2


def test_a_used_up_or_forgotten_flow_has_no_attempt(rt, flows, token, clock):
    flow = flows.find(token)
    clock.advance(minutes=5)
    assert flows.find(token).state is FlowState.EXPIRED
    assert flows.consume(flow, "a")
    assert flows.take_attempt(flow, "b", 5) == 0
    flows.discard_all(1)
    assert flows.take_attempt(flow, "b", 5) == 0
    assert flows.find(token) is None
    assert not flows.consume(flow, "a")
    assert rt.redis.client.keys("gatehouse:flow*") == []


def test_the_list_of_an_accounts_flows_lives_as_long_as_the_longest(rt, flows):
    """Or a short one that is opened later would make the others impossible to discard."""
    list_of = "gatehouse:flows-of:test:1"
    longest = 60 * MINUTES + EXPIRED_RETENTION
    flows.open(1, {}, MINUTES, "t_")
    assert 0 < rt.redis.client.ttl(list_of) <= (MINUTES + EXPIRED_RETENTION).total_seconds() + 1
    long_lived = flows.open(1, {}, 60 * MINUTES, "t_")
    flows.open(1, {}, MINUTES, "t_")
    assert rt.redis.client.ttl(list_of) >= longest.total_seconds() - 60
    flows.discard_all(1)
    assert flows.find(long_lived) is None


def test_what_redis_has_forgotten_leaves_the_list(rt, flows, clock):
    flows.open(1, {}, MINUTES, "t_")
    clock.advance(seconds=(MINUTES + EXPIRED_RETENTION).total_seconds())
    flows.open(1, {}, MINUTES, "t_")
    assert rt.redis.client.zcard("gatehouse:flows-of:test:1") == 1


def test_other_accounts_and_kinds_keep_theirs(rt, flows, clock, token):
    others = FlowStore(rt.redis.breaker, clock, "others")
    theirs, elsewhere = flows.open(2, {}, MINUTES, "t_"), others.open(1, {}, MINUTES, "t_")
    assert others.find(token) is None
    flows.discard_all(1)
    assert flows.find(token) is None
    assert flows.find(theirs) is not None
    assert others.find(elsewhere) is not None
