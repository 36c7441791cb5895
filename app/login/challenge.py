"""The second step of a login: a code of one of the account's methods (spec 02 §1.2).

Invariant: an attempt is spent before what was typed is looked at, so however many requests come at
once, no more than five guesses are judged per login, and no more than decision A11's per account.
"""

from collections.abc import Callable
from functools import partial

from app.audit.models import Action
from app.core.client import Client
from app.core.errors import AppError
from app.core.runtime import Runtime
from app.login import completion
from app.login.answer import Answer
from app.login.errors import PasswordLoginDisabled
from app.login.service import LoginOutcome
from app.login.waiting import MOST_ATTEMPTS, FirstFactorKind, find_login, unchanged_account
from app.mfa import email_codes, flows, totp
from app.mfa import service as mfa
from app.mfa.errors import (
    MfaAttemptsExceeded,
    MfaCodeInvalid,
    MfaEmailCodeExpired,
    MfaEmailCodeRequired,
    MfaFactorRequired,
    MfaFlowInvalid,
    MfaRecoveryCodeUsed,
)
from app.mfa.models import MfaMethod
from app.mfa.service import Proof
from app.settings import keys


def verify(
    rt: Runtime, *, flow_token: str, method: MfaMethod, code: str, client: Client
) -> LoginOutcome:
    """Finish a login with a second factor; its session belongs to the client of the first step.

    Raises: MfaFlowInvalid, MfaFlowExpired, PasswordLoginDisabled, AccountDisabled,
    PendingActivation, MfaFactorRequired, MfaEmailCodeRequired, MfaEmailCodeExpired, RateLimited,
    none of which spends an attempt; MfaCodeInvalid, MfaRecoveryCodeUsed; MfaAttemptsExceeded for
    the fifth wrong code, which ends the login.
    Source: spec 02 §1.2; decisions A3, A4, A11, A16, A17.
    """
    waiting = find_login(rt, flow_token)
    is_password = waiting.first_factor is FirstFactorKind.PASSWORD
    if is_password and not rt.settings.get(keys.PASSWORD_LOGIN_ENABLED):
        raise PasswordLoginDisabled
    answer = Answer(rt, waiting, unchanged_account(rt, waiting), method, client)
    look = _how_to_look(answer, code)
    number = _spend_attempt(answer)
    try:
        outcome = completion.sign_in(answer, look(), number)
    except (MfaCodeInvalid, MfaRecoveryCodeUsed) as error:
        raise _wrong(answer, number, error) from None
    rt.failed_secrets.clear(answer.attempts_key, client.network)
    if waiting.client.network != client.network:
        rt.failed_secrets.clear(answer.attempts_key, waiting.client.network)
    return outcome


def _how_to_look(answer: Answer, code: str) -> Callable[[], Proof]:
    """Return what judges the code; refuse first what is no guess and spends no attempt.

    Raises: MfaFactorRequired, MfaEmailCodeRequired, MfaEmailCodeExpired; MfaFlowInvalid.
    """
    rt, account, method = answer.rt, answer.account, answer.method
    if method is MfaMethod.RECOVERY_CODE:
        return partial(mfa.check_recovery_code, rt, account.id, code)
    shape = totp if method is MfaMethod.TOTP else email_codes
    digits = shape.normalised(code)
    if digits is None:
        return _malformed
    if method is MfaMethod.EMAIL_CODE:
        return _how_to_look_at_email_code(answer, digits)
    factor = mfa.find_totp(rt, account.id)
    if factor is None:
        raise MfaFactorRequired
    return partial(mfa.check_totp, rt, factor, digits)


def _how_to_look_at_email_code(answer: Answer, digits: str) -> Callable[[], Proof]:
    rt, account, flow = answer.rt, answer.account, answer.waiting.flow
    if MfaMethod.EMAIL_CODE not in mfa.methods(rt, account):
        raise MfaFactorRequired
    try:
        sent = email_codes.find(rt, account, flow)
    except MfaEmailCodeExpired as error:
        _record_failure(answer, flow.attempts, error)
        raise
    except MfaEmailCodeRequired:
        if flows.logins(rt).is_consumed(flow):
            raise MfaFlowInvalid from None  # another request has just used both up
        raise

    def look() -> Proof:
        email_codes.check(rt, account, flow, sent, digits)
        return Proof(MfaMethod.EMAIL_CODE)

    return look


def _malformed() -> Proof:
    raise MfaCodeInvalid


def _spend_attempt(answer: Answer) -> int:
    """Take one of the login's attempts and one of the account's; return its number, from 1 on.

    Of many simultaneous requests all but five get none, and use up nothing of what the account has.
    Raises: MfaFlowInvalid, RateLimited.
    """
    rt, flow = answer.rt, answer.waiting.flow
    slots = rt.failed_secrets.slots(answer.attempts_key, answer.client.network)
    number = flows.logins(rt).spend_attempt(flow, answer.attempt, MOST_ATTEMPTS, slots)
    if not number:
        raise MfaFlowInvalid
    return number


def _wrong(answer: Answer, number: int, error: AppError) -> AppError:
    """Note a wrong code and return what to answer; the last one ends the login.

    While another request completes this login, its right code is a used one to everybody else:
    they did not mistype it, they came too late.
    """
    logins, flow = flows.logins(answer.rt), answer.waiting.flow
    if logins.is_consumed(flow):
        return MfaFlowInvalid()
    if number >= MOST_ATTEMPTS:
        logins.exhaust(flow)
        error = MfaAttemptsExceeded()
    _record_failure(answer, number, error)
    return error


def _record_failure(answer: Answer, attempts: int, error: AppError) -> None:
    answer.record(
        Action.USER_MFA_CHALLENGE_FAILED, attempt_count=attempts, failure_reason=error.code
    )
