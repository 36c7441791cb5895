"""Refreshes, replays and the end of a session at the same moment."""

import json
from functools import partial

import pytest

from app.core.access import COMMAND_LINE
from app.sessions import queries, revocation, service
from tests.support.factories import audit_rows
from tests.support.races import run_concurrently

pytestmark = pytest.mark.both_databases

ALARM = "user_refresh_token_reuse_detected"
REUSED = "auth.refresh_token_reuse_detected"
INVALID = "auth.token_invalid"


def test_of_many_replays_at_once_one_sounds_the_alarm(rt, signed_in):
    thieves = [signed_in.twin() for _ in range(8)]
    signed_in.refresh().ok()
    answers = run_concurrently([thief.refresh for thief in thieves])
    assert sorted(answer.code for answer in answers) == [REUSED] + [INVALID] * 7
    [entry] = audit_rows(rt, ALARM)
    assert json.loads(entry.details)["removed"] == 1
    signed_in.me().fails(401, INVALID)


def test_a_replay_overtaken_by_another_ends_nothing_begun_since(rt, signed_in, user, monkeypatch):
    """By then the session is gone, and its owner has signed in again."""
    thief, accomplice, owner = signed_in.twin(), signed_in.twin(), signed_in.stranger()
    signed_in.refresh().ok()
    look = queries.find_by_token

    def overtaken(*arguments):
        holder = look(*arguments)
        monkeypatch.setattr(queries, "find_by_token", look)
        accomplice.refresh().fails(401, REUSED)
        owner.login(user).ok()
        return holder

    monkeypatch.setattr(queries, "find_by_token", overtaken)
    assert thief.refresh().fails(401, INVALID).set_cookies == {}
    owner.me().ok()
    owner.refresh().ok()
    assert len(audit_rows(rt, ALARM)) == 1


def end_others(client, other_id):
    return client.delete("/auth/sessions/others")


def end_one(client, other_id):
    return client.delete(f"/auth/sessions/{other_id}")


def current_id(client):
    [current] = [one["id"] for one in client.get("/auth/sessions").ok() if one["is_current"]]
    return current


@pytest.mark.parametrize("end", [end_others, end_one])
def test_of_two_sessions_that_end_each_other_one_stays(signed_in, user, monkeypatch, end):
    """Else nobody would be signed in: the rival's request is done before this one has the lock."""
    rival = signed_in.stranger()
    rival.login(user).ok()
    look = queries.find_by_token

    def overtaken(*arguments):
        found = look(*arguments)
        monkeypatch.setattr(queries, "find_by_token", look)
        end(rival, own).ok()
        return found

    own, others = (current_id(client) for client in (signed_in, rival))
    monkeypatch.setattr(queries, "find_by_token", overtaken)
    end(signed_in, others).fails(401, INVALID)
    rival.me().ok()


def end_by_logout(rt, client, user):
    client.bearer().post("/auth/logout").ok()


def end_by_operator(rt, client, user):
    revocation.revoke_any(
        rt, COMMAND_LINE, service.authenticate(rt, client.access_token).session_id
    )


def end_all(rt, client, user):
    with rt.transaction() as session:
        assert service.revoke_all(rt, session, user.id) == 1


@pytest.mark.parametrize("attempt", range(2))
@pytest.mark.parametrize("end", [end_by_logout, end_by_operator, end_all])
def test_a_refresh_beside_the_end_of_its_session_leaves_nothing_alive(
    rt, signed_in, user, end, attempt
):
    """Whichever is first: the new token ends with the session, or there is none."""
    ender = signed_in.twin()
    answer, _ = run_concurrently([signed_in.refresh, partial(end, rt, ender, user)])
    if answer.status != 200:
        answer.fails(401, INVALID)
    signed_in.me().fails(401, INVALID)
    signed_in.refresh().fails(401, INVALID)
    assert audit_rows(rt, ALARM) == []
