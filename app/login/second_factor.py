"""The second step of a login: a code of one of the account's methods.

Invariant: an attempt is spent before the code is examined, so however many requests run
concurrently, at most five guesses are judged per login, and at most ten per account and network.
"""

from collections.abc import Callable
from functools import partial

from app.audit import service as audit
from app.audit.models import Action
from app.core.client import Client, SignInWish
from app.core.errors import AppError
from app.core.runtime import Runtime
from app.login import completion, pending_login, sign_in_methods
from app.login.completion import FirstFactorKind, LoginOutcome
from app.login.pending_login import SecondStep
from app.mail import service as mail
from app.mail.errors import MailNotConfigured
from app.mail.templates import Template
from app.mfa import email_codes
from app.mfa import service as mfa
from app.mfa.email_codes import NewCode
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
from app.store.limits import is_verdict


def verify(
    rt: Runtime, *, flow_token: str, method: MfaMethod, code: str, client: Client, wish: SignInWish
) -> LoginOutcome:
    """Complete a pending login; the session belongs to the client of the first step.

    The browser that is remembered is that of this step.

    Raises: errors.VERIFY, RateLimited. Only MfaCodeInvalid and MfaRecoveryCodeUsed spend an
    attempt; MfaAttemptsExceeded replaces them for the fifth wrong code, which ends the login.
    """
    pending = pending_login.get(rt, flow_token)
    if pending.first_factor == FirstFactorKind.PASSWORD:
        sign_in_methods.require_password_login(rt)
    account = pending_login.unchanged_account(rt, pending)
    step = SecondStep(pending, account, method, client)
    check = _check(rt, step, code)
    number = pending_login.take_attempt(rt, step)
    try:
        return completion.complete_pending(rt, step, number, check(), wish)
    except (MfaCodeInvalid, MfaRecoveryCodeUsed) as error:
        raise _wrong(rt, step, number, error) from None
    except BaseException as error:
        if not is_verdict(error):
            pending_login.give_back(rt, step)
        raise


def send_email_code(rt: Runtime, *, flow_token: str, client: Client) -> NewCode:
    """Mail a code for a pending login, synchronously; earlier codes become void.

    Raises: errors.SEND_CODE; RateLimited during the cooldown.
    """
    if not flow_token.strip():
        raise MfaFlowInvalid
    if not rt.settings.get(keys.EMAIL_CODE_LOGIN_ENABLED) or not mail.is_smtp_configured(rt):
        raise MailNotConfigured
    pending = pending_login.get(rt, flow_token)
    account = pending_login.unchanged_account(rt, pending)
    if MfaMethod.EMAIL_CODE not in mfa.methods(rt, account):
        raise MfaFactorRequired
    new = email_codes.send(rt, account, pending.flow, Template.LOGIN_EMAIL_CODE)
    details = {"expires_in": new.expires_in, "resend_after": new.resend_after}
    step = SecondStep(pending, account, MfaMethod.EMAIL_CODE, client)
    audit.record_best_effort(rt, step.event(Action.USER_MFA_EMAIL_CODE_SEND, details))
    return new


def _check(rt: Runtime, step: SecondStep, code: str) -> Callable[[], Proof]:
    """Return the check of a code; refuse right away what must not spend an attempt.

    Malformed input spends one like a wrong code, whether or not the account has the method.
    """
    account = step.account
    if step.method is MfaMethod.RECOVERY_CODE:
        return partial(mfa.check_recovery_code, rt, account.id, code)
    if step.method is MfaMethod.TOTP:
        factor = mfa.find_totp(rt, account.id)
        if factor is None and mfa.is_totp(code):
            raise MfaFactorRequired
        return partial(mfa.check_totp, rt, factor, code)
    digits = email_codes.normalised(code) or ""
    stored = _mailed_hash(rt, step) if digits else ""
    return partial(email_codes.check, rt, account, step.pending.flow, stored, digits)


def _mailed_hash(rt: Runtime, step: SecondStep) -> str:
    flow = step.pending.flow
    if MfaMethod.EMAIL_CODE not in mfa.methods(rt, step.account):
        raise MfaFactorRequired
    try:
        return email_codes.find_hash(rt, step.account, flow)
    except MfaEmailCodeExpired as error:
        _record_failure(rt, step, flow.attempts, error)
        raise
    except MfaEmailCodeRequired:
        if mfa.pending_logins(rt).is_consumed(flow):
            raise MfaFlowInvalid from None  # another request has just consumed both
        raise


def _wrong(rt: Runtime, step: SecondStep, number: int, error: AppError) -> AppError:
    """Record a wrong code and return the error to raise; the last attempt ends the login.

    Once another request has completed this login, the correct code is a used one for all others:
    they have lost a race, not mistyped, so they get MfaFlowInvalid and no failure is recorded.
    """
    flows, flow = mfa.pending_logins(rt), step.pending.flow
    if flows.is_consumed(flow):
        return MfaFlowInvalid()
    if number >= pending_login.MAX_ATTEMPTS:
        flows.exhaust(flow)
        error = MfaAttemptsExceeded()
    _record_failure(rt, step, number, error)
    return error


def _record_failure(rt: Runtime, step: SecondStep, number: int, error: AppError) -> None:
    details = {"attempt_count": number, "failure_reason": error.code}
    audit.record_best_effort(rt, step.event(Action.USER_MFA_CHALLENGE_FAILED, details))
