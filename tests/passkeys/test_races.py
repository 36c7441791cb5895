"""Passkeys at the same moment: each flow, each count, each credential is good once."""

from contextlib import suppress
from functools import partial
from threading import Barrier, BrokenBarrierError

import pytest

from app.external_auth.models import Identity
from app.login import sign_in_methods
from app.passkeys import queries
from app.passkeys.models import Passkey, PasskeyHandle
from app.sessions.models import LoginSession
from tests.support.api import ApiClient
from tests.support.external import add_provider, link
from tests.support.factories import audit_rows, change_user, count, make_user
from tests.support.passkeys import (
    Authenticator,
    finish_login,
    finish_registration,
    register,
    start_login,
    start_registration,
)
from tests.support.races import run_concurrently

pytestmark = [pytest.mark.usefixtures("site"), pytest.mark.both_databases]

MANY = 32
TOKEN_INVALID = 401, "auth.token_invalid"
REFUSED = 401, "auth.credentials_failed"


def outcome(answer):
    return answer.status, answer.code


def insist_on_one(answers, *losers):
    winners = [answer for answer in answers if answer.status == 200]
    assert len(winners) == 1, [outcome(answer) for answer in answers]
    assert {outcome(answer) for answer in answers if answer.status != 200} <= set(losers)
    return winners[0].data


def test_of_32_finishes_of_one_login_one_succeeds(rt, signed_in, device, passkey):
    started = start_login(signed_in)
    proof = device.get(started["public_key"])
    before = count(rt, LoginSession)
    strangers = [signed_in.stranger() for _ in range(MANY)]
    jobs = [partial(finish_login, each, started["flow_id"], proof) for each in strangers]
    insist_on_one(run_concurrently(jobs), TOKEN_INVALID)
    assert count(rt, LoginSession) == before + 1
    assert len(audit_rows(rt, "user_passkey_login")) == 1


def test_of_32_finishes_of_one_registration_one_succeeds(rt, signed_in):
    started = start_registration(signed_in)
    made = [Authenticator().create(started["public_key"]) for _ in range(MANY)]
    twins = [signed_in.twin() for _ in range(MANY)]
    jobs = [
        partial(finish_registration, twin, started["flow_id"], each)
        for twin, each in zip(twins, made, strict=True)
    ]
    data = insist_on_one(run_concurrently(jobs), TOKEN_INVALID)
    assert signed_in.get("/auth/passkeys").ok() == [data]
    assert len(audit_rows(rt, "user_passkey_register")) == 1


def test_of_many_logins_with_one_count_one_succeeds(rt, signed_in):
    """Two copies of a key, used at the same moment."""
    device = Authenticator()
    register(signed_in, device).ok()
    before = count(rt, LoginSession)
    jobs = []
    for _ in range(16):
        stranger = signed_in.stranger()
        started = start_login(stranger)
        proof = device.get(started["public_key"], count=9)
        jobs.append(partial(finish_login, stranger, started["flow_id"], proof))
    insist_on_one(run_concurrently(jobs), REFUSED)
    assert count(rt, LoginSession) == before + 1
    assert len(audit_rows(rt, "user_passkey_login")) == 1
    assert signed_in.get("/auth/passkeys").ok()[0]["sign_count"] == 9


def test_passkeys_that_do_not_count_sign_in_side_by_side(rt, signed_in, device, passkey):
    jobs = []
    for _ in range(16):
        stranger = signed_in.stranger()
        started = start_login(stranger)
        jobs.append(
            partial(finish_login, stranger, started["flow_id"], device.get(started["public_key"]))
        )
    assert {outcome(answer) for answer in run_concurrently(jobs)} == {(200, "success")}
    assert len(audit_rows(rt, "user_passkey_login")) == 16


def test_of_many_accounts_that_register_one_credential_one_gets_it(rt, app):
    credential_id, jobs = bytes(32), []
    for _ in range(8):
        client = ApiClient(app)
        client.login(make_user(rt)).ok()
        started = start_registration(client)
        made = Authenticator().create(started["public_key"], credential_id=credential_id)
        jobs.append(partial(finish_registration, client, started["flow_id"], made))
    insist_on_one(run_concurrently(jobs), (400, "bad_request"))
    assert count(rt, Passkey) == 1


def test_many_starts_at_once_give_an_account_one_handle(rt, signed_in):
    twins = [signed_in.twin() for _ in range(8)]
    started = run_concurrently([partial(start_registration, twin) for twin in twins])
    assert len({each["public_key"]["publicKey"]["user"]["id"] for each in started}) == 1
    assert count(rt, PasskeyHandle) == 1


@pytest.fixture
def together():
    """Returns a look at what is left, after which two meet unless one waits for the other."""
    both = Barrier(2)

    def meeting_after(look):
        def looked(*arguments):
            seen = look(*arguments)
            with suppress(BrokenBarrierError):
                both.wait(0.3)
            return seen

        return looked

    return meeting_after


def test_of_two_removals_at_once_one_way_in_is_left(rt, signed_in, user, together, monkeypatch):
    monkeypatch.setattr(queries, "has_passkey", together(queries.has_passkey))
    made = [register(signed_in, Authenticator()).ok() for _ in range(2)]
    change_user(rt, user, password_hash=None)
    twins = [signed_in.twin() for _ in made]
    jobs = [
        partial(twin.delete, f"/auth/passkeys/{each['id']}")
        for twin, each in zip(twins, made, strict=True)
    ]
    insist_on_one(run_concurrently(jobs), (409, "conflict"))
    assert count(rt, Passkey) == count(rt, PasskeyHandle) == 1


def test_of_a_passkey_and_a_link_removed_at_once_one_is_left(
    rt, signed_in, user, together, monkeypatch
):
    by_any_method = sign_in_methods.by_any_method
    monkeypatch.setattr(sign_in_methods, "by_any_method", lambda rt: together(by_any_method(rt)))
    passkey = register(signed_in, Authenticator()).ok()
    link_id = link(rt, user, add_provider(rt))
    change_user(rt, user, password_hash=None)
    jobs = [
        partial(signed_in.twin().delete, f"/auth/passkeys/{passkey['id']}"),
        partial(signed_in.twin().delete, f"/auth/external-auth/links/{link_id}"),
    ]
    insist_on_one(run_concurrently(jobs), (409, "conflict"))
    assert count(rt, Passkey) + count(rt, Identity) == 1


def test_a_removal_and_logins_at_once_leave_no_session_behind_the_removal(
    rt, signed_in, device, passkey
):
    """Whoever comes after the removal is refused; nobody fails."""
    strangers = [signed_in.stranger() for _ in range(8)]
    flows = [start_login(each) for each in strangers]
    jobs = [
        partial(finish_login, each, flow["flow_id"], device.get(flow["public_key"]))
        for each, flow in zip(strangers, flows, strict=True)
    ]
    jobs.insert(4, partial(signed_in.delete, f"/auth/passkeys/{passkey['id']}"))
    answers = run_concurrently(jobs)
    assert outcome(answers[4]) == (200, "success")
    assert {outcome(answer) for answer in answers} <= {(200, "success"), REFUSED}
    opened = sum(answer.status == 200 for answer in answers) - 1
    assert len(audit_rows(rt, "user_passkey_login")) == opened
