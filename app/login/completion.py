"""Turns the right code for a pending login into a session.

Invariant: login and code are consumed together, once. The login is consumed first, in Redis, and
reopened only if that cannot lead to a second session: either nothing was written, or the code has a
row of its own, which a committed session has marked used, so the same code would be refused. Then
the account's failures are forgotten: both factors are proven.
"""

from contextlib import suppress

from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError

from app.audit.models import Action
from app.core.errors import AppError, DatabaseConnectionLost
from app.core.runtime import Runtime
from app.login.mfa_login import Attempt, unchanged_account
from app.login.second_step import SecondStep
from app.login.service import LoginOutcome
from app.mfa import email_codes, flows
from app.mfa import service as mfa
from app.mfa.errors import MfaFlowInvalid
from app.mfa.service import EmailCodeProof, Proof, TotpProof
from app.sessions import service as sessions
from app.users import identifiers


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
        rt.limits.attempts.clear(key, network, attempt.name)
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
    pair = sessions.open_if_unchanged(
        rt,
        account,
        step.login.client,
        is_limited=is_limited,
        event=event,
        consume=lambda session: mfa.consume_for_login(rt, session, account, proof),
    )
    if pair is None:
        raise _refusal(rt, step)
    return LoginOutcome(pair, is_limited)


def _refusal(rt: Runtime, step: SecondStep) -> AppError:
    """Return, or raise, how the account changed meanwhile.

    Raises: MfaFlowInvalid, AccountDisabled, PendingActivation.
    """
    unchanged_account(rt, step.login)
    return MfaFlowInvalid()


def _reopen_if_safe(
    rt: Runtime, step: SecondStep, proof: Proof, attempt: Attempt, error: BaseException
) -> None:
    """Allow the login to be retried, unless it may have opened a session with an e-mail code.

    No database row records that such a code was used: only its login prevents a replay.
    """
    is_rolled_back = isinstance(error, (AppError, SQLAlchemyError))
    is_certain = is_rolled_back and not isinstance(error, DatabaseConnectionLost)
    if isinstance(proof, EmailCodeProof) and not is_certain:
        _forget_email_code(rt, step)
        return
    with suppress(RedisError):  # then the login stays consumed, which is safe
        flows.logins(rt).reopen(step.login.flow, attempt.name)


def _forget_email_code(rt: Runtime, step: SecondStep) -> None:
    with suppress(RedisError):  # the code is worthless without its login
        email_codes.delete_for_login(rt, step.account, step.login.flow)
