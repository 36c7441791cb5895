"""Turns the right code for a pending login into a session.

Invariant: login and code are consumed together, once. The login is consumed first, in Redis, and
reopened only if that cannot lead to a second session: either nothing was written, or the code has a
row of its own, which a committed session has marked used, so the same code would be refused. Then
the account's failures are forgotten: both factors are proven.
"""

from contextlib import suppress

from redis.exceptions import RedisError

from app.audit import service as audit
from app.audit.models import Action, Event
from app.core.access import TokenPair
from app.core.errors import AppError, DatabaseConnectionLost
from app.core.runtime import Runtime
from app.login.mfa_login import Attempt, unchanged_account
from app.login.second_step import SecondStep
from app.login.service import LoginOutcome
from app.mfa import email_codes, flows
from app.mfa import service as mfa
from app.mfa.errors import MfaFlowInvalid
from app.mfa.service import EmailCodeProof, Notice, Proof, RecoveryCodeProof, TotpProof
from app.sessions import service as sessions
from app.users import identifiers, notices
from app.users import queries as users_queries


def sign_in(rt: Runtime, step: SecondStep, proof: Proof, attempt: Attempt) -> LoginOutcome:
    """Consume login and code and open the session, all or nothing.

    Raises: MfaFlowInvalid; AccountDisabled, PendingActivation if that happened meanwhile;
    MfaCodeInvalid, MfaRecoveryCodeUsed if another request has just used the same code.
    """
    login, flow = step.login, step.login.flow
    if not flows.logins(rt).consume(flow, attempt.name):
        raise MfaFlowInvalid
    try:
        outcome = _open_session(rt, step, proof, attempt.number)
    except BaseException as error:
        _reopen_if_safe(rt, step, proof, attempt, error)
        raise
    for network in {step.client.network, login.client.network}:
        key = identifiers.attempts_key(login.user_id)
        rt.attempt_limits.clear(key, network, attempt.name)
    if isinstance(proof, EmailCodeProof):
        _forget_email_code(rt, step)
    return outcome


def _open_session(rt: Runtime, step: SecondStep, proof: Proof, number: int) -> LoginOutcome:
    account = step.account
    is_limited = sessions.is_password_change_forced(rt, account)
    event = step.event(
        Action.USER_MFA_CHALLENGE_SUCCESS,
        entity_id=proof.factor.id if isinstance(proof, TotpProof) else None,
        attempt_count=number - 1,
        password_change_required=is_limited,
    )
    if isinstance(proof, RecoveryCodeProof):
        pair = _open_with_recovery_code(rt, step, proof, event, is_limited=is_limited)
    else:
        pair = sessions.open_if_unchanged(
            rt,
            account,
            step.login.client,
            is_limited=is_limited,
            event=event,
            use=mfa.one_time_login_use(rt, proof) if isinstance(proof, TotpProof) else None,
        )
    if pair is None:
        raise _refusal(rt, step, proof)
    return LoginOutcome(pair, is_limited)


def _open_with_recovery_code(
    rt: Runtime, step: SecondStep, proof: RecoveryCodeProof, event: Event, *, is_limited: bool
) -> TokenPair | None:
    account, client = step.account, step.login.client
    with rt.transaction() as session:
        now_is = users_queries.lock_version(session, account.id)
        if now_is != (account.status, account.session_version):
            return None
        if not mfa.consume_proof(rt, session, proof):
            return None
        notices.notify_owner(rt, session, account, Notice.RECOVERY_CODE_USED)
        audit.record(rt, session, event)
        return sessions.open_session(rt, session, account.id, client, is_limited=is_limited)


def _refusal(rt: Runtime, step: SecondStep, proof: Proof) -> AppError:
    """Return why no session was opened: the account changed, or the code was used concurrently.

    Raises: MfaFlowInvalid, AccountDisabled, PendingActivation.
    """
    unchanged_account(rt, step.login)
    return proof.lost_race_error()


def _reopen_if_safe(
    rt: Runtime, step: SecondStep, proof: Proof, attempt: Attempt, error: BaseException
) -> None:
    """Allow the login to be retried, unless it may have opened a session with an e-mail code.

    No database row records that such a code was used: only its login prevents a replay.
    """
    is_certain = isinstance(error, AppError) and not isinstance(error, DatabaseConnectionLost)
    if isinstance(proof, EmailCodeProof) and not is_certain:
        _forget_email_code(rt, step)
        return
    with suppress(RedisError):  # then the login stays consumed, which is safe
        flows.logins(rt).reopen(step.login.flow, attempt.name)


def _forget_email_code(rt: Runtime, step: SecondStep) -> None:
    with suppress(RedisError):  # the code is worthless without its login
        email_codes.delete_for_login(rt, step.account, step.login.flow)
