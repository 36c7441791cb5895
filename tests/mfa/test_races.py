"""Changes of second factors at the same moment: each code and each setup is good once."""

from functools import partial

import pytest

from app.mfa import management, service
from app.mfa.errors import MfaRecoveryCodeUsed
from app.mfa.models import MfaFactor, MfaRecoveryCode
from tests.support.authenticator import finish_setup, start_setup
from tests.support.factories import account_of, audit_rows, count
from tests.support.races import run_concurrently

pytestmark = pytest.mark.both_databases

MANY = 16
LOST = {(401, "auth.mfa_code_invalid"), (401, "auth.mfa_recovery_code_used"), (429, "rate_limited")}


@pytest.fixture
def twins(signed_in):
    """Clients of the same session."""
    return [signed_in.twin() for _ in range(MANY)]


def outcome(answer):
    return answer.status, answer.code


def insist_on_one(answers, losers):
    winners = [answer for answer in answers if answer.status == 200]
    assert len(winners) == 1, [outcome(answer) for answer in answers]
    assert {outcome(answer) for answer in answers if answer.status != 200} <= losers
    return winners[0].data


def test_one_setup_finished_many_times_at_once_makes_one_factor(rt, signed_in, clock, twins):
    flow_token, app = start_setup(signed_in, clock)
    code = app.code()
    answers = run_concurrently([partial(finish_setup, twin, flow_token, code) for twin in twins])
    data = insist_on_one(answers, {(403, "auth.mfa_factor_already_exists")})
    insist_on_one_factor(rt, signed_in, data)
    finish_setup(signed_in, flow_token, code).fails(403, "auth.mfa_factor_already_exists")


def test_many_setups_finished_at_once_make_one_factor(rt, signed_in, clock, twins):
    jobs = []
    for twin in twins:
        flow_token, app = start_setup(signed_in, clock)
        jobs.append(partial(finish_setup, twin, flow_token, app.code()))
    data = insist_on_one(run_concurrently(jobs), {(403, "auth.mfa_factor_already_exists")})
    insist_on_one_factor(rt, signed_in, data)


def insist_on_one_factor(rt, client, data):
    """The winner's factor, with the winner's recovery codes."""
    assert client.get("/auth/mfa").ok()["factors"] == [data["factor"]]
    assert count(rt, MfaFactor) == 1
    assert count(rt, MfaRecoveryCode) == 10
    assert len(audit_rows(rt, "user_mfa_enable")) == 1
    body = {"code": data["recovery_codes"][9]}
    client.post("/auth/mfa/recovery-codes/regenerate", body).ok()


@pytest.mark.parametrize("kind", ["totp", "recovery_code"])
def test_one_code_removes_a_factor_once(rt, enabled, twins, kind):
    code = enabled.app.code() if kind == "totp" else enabled.recovery_codes[0]
    path = f"/auth/mfa/factors/{enabled.factor_id}"
    insist_on_one(
        run_concurrently([partial(twin.delete, path, {"code": code}) for twin in twins]), LOST
    )
    assert count(rt, MfaFactor) == count(rt, MfaRecoveryCode) == 0
    assert len(audit_rows(rt, "user_mfa_disable")) == 1


@pytest.mark.parametrize("kind", ["totp", "recovery_code"])
def test_one_code_makes_new_recovery_codes_once(rt, signed_in, enabled, clock, twins, kind):
    code = enabled.app.code() if kind == "totp" else enabled.recovery_codes[0]
    path = "/auth/mfa/recovery-codes/regenerate"
    answers = run_concurrently([partial(twin.post, path, {"code": code}) for twin in twins])
    codes = insist_on_one(answers, LOST)
    assert count(rt, MfaRecoveryCode, MfaRecoveryCode.used_at.is_(None)) == 10
    assert len(audit_rows(rt, "user_mfa_recovery_codes_regenerate")) == 1
    clock.advance(minutes=5, seconds=1)  # the losers have used up what may be tried
    signed_in.post(path, {"code": codes[0]}).ok()


@pytest.mark.parametrize("attempt", range(2))
@pytest.mark.parametrize("kind", ["totp", "recovery_code"])
def test_one_code_for_two_changes_at_once_makes_one_of_them(rt, enabled, twins, kind, attempt):
    code = enabled.app.code() if kind == "totp" else enabled.recovery_codes[0]
    body = {"code": code}
    jobs = [
        partial(twins[0].delete, f"/auth/mfa/factors/{enabled.factor_id}", body),
        partial(twins[1].post, "/auth/mfa/recovery-codes/regenerate", body),
    ]
    insist_on_one(run_concurrently(jobs), LOST - {(429, "rate_limited")})
    done = [*audit_rows(rt, "user_mfa_disable")]
    done += audit_rows(rt, "user_mfa_recovery_codes_regenerate")
    assert len(done) == 1


def test_parallel_guesses_do_not_overtake_the_limit(enabled, twins):
    path = "/auth/mfa/recovery-codes/regenerate"
    body = {"code": enabled.app.wrong_code()}
    answers = run_concurrently([partial(twin.post, path, body) for twin in twins])
    outcomes = [outcome(answer) for answer in answers]
    assert outcomes.count((401, "auth.mfa_code_invalid")) == 10
    assert outcomes.count((429, "rate_limited")) == MANY - 10


def test_a_replaced_recovery_code_uses_up_none_of_the_new_ones(rt, signed_in, user, enabled):
    proof = service.check_recovery_code(rt, user.id, enabled.recovery_codes[0])
    body = {"code": enabled.app.code()}
    signed_in.post("/auth/mfa/recovery-codes/regenerate", body).ok()
    account = account_of(rt, user)
    with pytest.raises(MfaRecoveryCodeUsed), rt.transaction() as session:
        service.consume(rt, session, account, proof)
    assert management.show(rt, user.id).recovery_codes_remaining == 10
