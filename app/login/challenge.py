"""The second step of a login: a code of one of the account's methods.

Invariant: an attempt is spent before the code is examined, so however many requests run
concurrently, at most five guesses are judged per login, and at most ten per account and network.
"""

from collections.abc import Callable
from functools import partial

from app.audit.models import Action
from app.core.client import Client
from app.core.errors import AppError
from app.core.limits import is_verdict
from app.core.runtime import Runtime
from app.login import completion, sign_in_methods
from app.login.mfa_login import (
    MAX_ATTEMPTS,
    FirstFactorKind,
    MfaLogin,
    get_login,
    give_back,
    take_attempt,
    unchanged_account,
)
from app.login.second_step import SecondStep, record
from app.login.service import LoginOutcome
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
from app.mfa.service import EmailCodeProof, Proof


def verify(
    rt: Runtime, *, flow_token: str, method: MfaMethod, code: str, client: Client
) -> LoginOutcome:
    """Finish a login with a second factor; the session belongs to the client of the first step.

    Raises: MfaFlowInvalid, MfaFlowExpired, PasswordLoginDisabled, AccountDisabled,
    PendingActivation, MfaFactorRequired, MfaEmailCodeRequired, MfaEmailCodeExpired, RateLimited,
    SecretUnreadable, none of which spends an attempt; MfaCodeInvalid, MfaRecoveryCodeUsed;
    MfaAttemptsExceeded for the fifth wrong code, which ends the login.
    """
    login = get_login(rt, flow_token)
    step = _second_step(rt, login, method, client)
    verify_code = _verifier(rt, step, code)
    attempt = take_attempt(rt, login, client)
    try:
        return completion.sign_in(rt, step, verify_code(), attempt)
    except (MfaCodeInvalid, MfaRecoveryCodeUsed) as error:
        raise _wrong(rt, step, attempt.number, error) from None
    except BaseException as error:
        if not is_verdict(error):
            give_back(rt, login, attempt, client)
        raise


def _second_step(rt: Runtime, login: MfaLogin, method: MfaMethod, client: Client) -> SecondStep:
    """Return the step with the account as it is now.

    Raises: PasswordLoginDisabled, AccountDisabled, PendingActivation, MfaFlowInvalid.
    """
    if login.first_factor is FirstFactorKind.PASSWORD:
        sign_in_methods.require_password_login(rt)
    return SecondStep(login, unchanged_account(rt, login), method, client)


def _verifier(rt: Runtime, step: SecondStep, code: str) -> Callable[[], Proof]:
    """Return a function that verifies the code; refuse right away what must not spend an attempt.

    Raises: MfaFactorRequired, MfaFlowInvalid, MfaEmailCodeRequired, MfaEmailCodeExpired.
    """
    if step.method is MfaMethod.TOTP:
        return _totp_verifier(rt, step, code)
    if step.method is MfaMethod.EMAIL_CODE:
        return _email_code_verifier(rt, step, code)
    return partial(mfa.check_recovery_code, rt, step.login.user_id, code)


def _totp_verifier(rt: Runtime, step: SecondStep, code: str) -> Callable[[], Proof]:
    digits = totp.normalised(code)
    if digits is None:
        return _refuse_malformed
    factor = mfa.find_totp(rt, step.login.user_id)
    if factor is None:
        raise MfaFactorRequired
    return partial(mfa.check_totp, rt, factor, digits)


def _email_code_verifier(rt: Runtime, step: SecondStep, code: str) -> Callable[[], Proof]:
    account, flow = step.account, step.login.flow
    digits = email_codes.normalised(code)
    if digits is None:
        return _refuse_malformed
    if MfaMethod.EMAIL_CODE not in mfa.methods(rt, account):
        raise MfaFactorRequired
    try:
        code_hash = email_codes.find_hash(rt, account, flow)
    except MfaEmailCodeExpired as error:
        _record_failure(rt, step, flow.attempts, error)
        raise
    except MfaEmailCodeRequired:
        if flows.logins(rt).is_consumed(flow):
            raise MfaFlowInvalid from None  # another request has just consumed both
        raise

    def verify_code() -> Proof:
        email_codes.check(rt, account, flow, code_hash, digits)
        return EmailCodeProof()

    return verify_code


def _refuse_malformed() -> Proof:
    """Refuse malformed input like a wrong code: it spends an attempt, too."""
    raise MfaCodeInvalid


def _wrong(rt: Runtime, step: SecondStep, number: int, error: AppError) -> AppError:
    """Record a wrong code and return the error to raise; the last attempt ends the login.

    Once another request has consumed this login, the correct code is a used one for all others:
    they have lost a race, not mistyped, so they get MfaFlowInvalid and no failure is recorded.
    """
    logins, flow = flows.logins(rt), step.login.flow
    if logins.is_consumed(flow):
        return MfaFlowInvalid()
    if number >= MAX_ATTEMPTS:
        logins.exhaust(flow)
        error = MfaAttemptsExceeded()
    _record_failure(rt, step, number, error)
    return error


def _record_failure(rt: Runtime, step: SecondStep, attempts: int, error: AppError) -> None:
    action = Action.USER_MFA_CHALLENGE_FAILED
    record(rt, step, action, attempt_count=attempts, failure_reason=error.code)
