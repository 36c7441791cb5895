"""The second step of a login: a code of one of the account's methods, or having one sent.

Invariant: an attempt is spent before what was typed is looked at, so however many requests come at
once, no more than five guesses are judged per login, and no more than decision A11's per account.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from redis.exceptions import RedisError
from sqlalchemy.orm import Session

from app.audit import service as audit
from app.audit.models import Action, EntityType
from app.core.client import Client
from app.core.errors import AppError, RateLimited
from app.core.runtime import Runtime
from app.core.tokens import TokenPair
from app.login.errors import PasswordLoginDisabled, PendingActivation
from app.login.service import LoginOutcome
from app.login.waiting import MOST_ATTEMPTS, FirstFactorKind, WaitingLogin, find_login
from app.mail import service as mail
from app.mail.errors import MailNotConfigured
from app.mail.templates import Template
from app.mfa import email_codes, flows, totp
from app.mfa import service as mfa
from app.mfa.errors import (
    MfaAttemptsExceeded,
    MfaCodeInvalid,
    MfaEmailCodeExpired,
    MfaFactorRequired,
    MfaFlowInvalid,
    MfaRecoveryCodeUsed,
)
from app.mfa.models import MfaMethod
from app.mfa.service import Notice, Proof
from app.sessions import service as sessions
from app.sessions.errors import AccountDisabled
from app.settings import keys
from app.users import identifiers
from app.users import queries as users_queries
from app.users.models import Account, Status


@dataclass(frozen=True)
class EmailCodeSent:
    """How long the code is good, and when another one can be sent, in seconds."""

    expires_in: int
    resend_after: int


@dataclass(frozen=True)
class _Challenge:
    """One answer to a waiting login's question."""

    rt: Runtime
    waiting: WaitingLogin
    account: Account
    method: MfaMethod
    client: Client

    @property
    def attempts_key(self) -> str:
        return identifiers.attempts_key(self.account.id)


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
    account = _unchanged_account(rt, waiting)
    challenge = _Challenge(rt, waiting, account, method, client)
    look = _how_to_look(challenge, code)
    attempt = _spend_attempt(challenge)
    try:
        outcome = _signed_in(challenge, look(), attempt)
    except (MfaCodeInvalid, MfaRecoveryCodeUsed) as error:
        raise _wrong(challenge, attempt, error) from None
    rt.failed_secrets.clear(challenge.attempts_key, client.network)
    if waiting.client.network != client.network:
        rt.failed_secrets.clear(challenge.attempts_key, waiting.client.network)
    return outcome


def send_email_code(rt: Runtime, *, flow_token: str, client: Client) -> EmailCodeSent:
    """Mail a code for a waiting login, while the caller waits; earlier codes are void.

    A mail that could not be sent leaves no cooldown.
    Raises: MfaFlowInvalid, MailNotConfigured, MfaFlowExpired, AccountDisabled, PendingActivation,
    MfaFactorRequired, RateLimited during the cooldown, MailDeliveryFailed.
    Source: spec 02 §1.3; decision E17.
    """
    if not flow_token.strip():
        raise MfaFlowInvalid
    if not rt.settings.get(keys.EMAIL_CODE_LOGIN_ENABLED) or not mail.is_smtp_configured(rt):
        raise MailNotConfigured
    waiting = find_login(rt, flow_token)
    account = _unchanged_account(rt, waiting)
    if MfaMethod.EMAIL_CODE not in mfa.methods(rt, account):
        raise MfaFactorRequired
    life = timedelta(seconds=rt.settings.get(keys.EMAIL_CODE_TTL_SECONDS))
    cooldown = timedelta(seconds=rt.settings.get(keys.EMAIL_CODE_COOLDOWN_SECONDS))
    new = email_codes.issue(rt, account, waiting.flow, life=life, cooldown=cooldown)
    expires_in = max(1, int(new.life.total_seconds()))
    told = {"username": account.username, "expires_in": mail.exact_life(expires_in)}
    try:
        mail.send_now(rt, Template.LOGIN_EMAIL_CODE, account.email, code=new.code, **told)
    except BaseException:
        with suppress(RedisError):  # the cooldown stays then
            email_codes.drop(rt, new.sent)
        raise
    answer = EmailCodeSent(expires_in, int(cooldown.total_seconds()))
    challenge = _Challenge(rt, waiting, account, MfaMethod.EMAIL_CODE, client)
    with rt.transaction() as session:
        _record(
            session,
            challenge,
            Action.USER_MFA_EMAIL_CODE_SEND,
            expires_in=answer.expires_in,
            resend_after=answer.resend_after,
        )
    return answer


def _unchanged_account(rt: Runtime, waiting: WaitingLogin) -> Account:
    """Return the account, if nothing that happened since the first step ends this login.

    Raises: AccountDisabled, PendingActivation, MfaFlowInvalid.
    """
    account = users_queries.find_by_id(rt.database, waiting.user_id)
    if account is None or account.created_at.isoformat() != waiting.account:
        raise MfaFlowInvalid
    if account.status != Status.ACTIVE:
        raise AccountDisabled
    if account.activated_at is None:
        raise PendingActivation
    if account.session_version != waiting.session_version:
        raise MfaFlowInvalid
    return account


def _how_to_look(challenge: _Challenge, code: str) -> Callable[[], Proof]:
    """Return what judges the code; refuse first what is no guess and spends no attempt.

    Raises: MfaFactorRequired, MfaEmailCodeRequired, MfaEmailCodeExpired.
    """
    rt, account, method = challenge.rt, challenge.account, challenge.method
    if method is MfaMethod.RECOVERY_CODE:
        return partial(mfa.check_recovery_code, rt, account.id, code)
    shape = totp if method is MfaMethod.TOTP else email_codes
    well_formed = shape.normalised(code)
    if well_formed is None:
        return _malformed
    if method not in mfa.methods(rt, account):
        raise MfaFactorRequired
    if method is MfaMethod.TOTP:
        return partial(mfa.check_totp, rt, account.id, code)
    return _how_to_look_at_email_code(challenge, well_formed)


def _how_to_look_at_email_code(challenge: _Challenge, code: str) -> Callable[[], Proof]:
    rt, flow = challenge.rt, challenge.waiting.flow
    try:
        sent = email_codes.find(rt, challenge.account, flow)
    except MfaEmailCodeExpired as error:
        _record_failure(challenge, flow.attempts, error)
        raise

    def look() -> Proof:
        email_codes.check(rt, challenge.account, flow, sent, code)
        return Proof(MfaMethod.EMAIL_CODE)

    return look


def _malformed() -> Proof:
    raise MfaCodeInvalid


def _spend_attempt(challenge: _Challenge) -> int:
    """Take one of the login's attempts and one of the account's; return its number, from 1 on.

    The login's comes first: of many simultaneous requests all but five end here, and do not use
    up what the account has left.
    Raises: MfaFlowInvalid, RateLimited.
    """
    rt, flow = challenge.rt, challenge.waiting.flow
    logins = flows.logins(rt)
    attempt = logins.spend_attempt(flow, MOST_ATTEMPTS)
    if not attempt:
        raise MfaFlowInvalid
    try:
        rt.failed_secrets.reserve(challenge.attempts_key, challenge.client.network)
    except RateLimited:
        logins.give_back_attempt(flow)
        raise
    return attempt


def _signed_in(challenge: _Challenge, proof: Proof, attempt: int) -> LoginOutcome:
    """Use login and code up and open the session; all of it or nothing.

    Raises: MfaFlowInvalid, AccountDisabled; MfaCodeInvalid, MfaRecoveryCodeUsed when another
    request used the same code a moment ago.
    """
    rt, waiting = challenge.rt, challenge.waiting
    logins = flows.logins(rt)
    if not logins.consume(waiting.flow):
        raise MfaFlowInvalid
    try:
        is_limited = sessions.is_change_forced(rt, challenge.account)
        with rt.transaction() as session:
            pair = _open_session(session, challenge, proof, attempt, is_limited=is_limited)
    except BaseException:
        with suppress(RedisError):  # the login stays used up then, which is safe
            logins.reopen(waiting.flow)
        raise
    if proof.method is MfaMethod.EMAIL_CODE:
        with suppress(RedisError):  # a code is worth nothing without its login
            email_codes.use_up(rt, challenge.account, waiting.flow)
    return LoginOutcome(pair, is_limited)


def _open_session(
    session: Session, challenge: _Challenge, proof: Proof, attempt: int, *, is_limited: bool
) -> TokenPair:
    rt, waiting, account = challenge.rt, challenge.waiting, challenge.account
    _require_unchanged(session, waiting)
    if proof.method is not MfaMethod.EMAIL_CODE and not mfa.claim(rt, session, account.id, proof):
        is_recovery_code = proof.method is MfaMethod.RECOVERY_CODE
        raise MfaRecoveryCodeUsed if is_recovery_code else MfaCodeInvalid
    if proof.method is MfaMethod.RECOVERY_CODE:
        mfa.notify(rt, session, account, Notice.RECOVERY_CODE_USED)
    _record(
        session,
        challenge,
        Action.USER_MFA_CHALLENGE_SUCCESS,
        entity_id=proof.factor_id,
        attempt_count=attempt - 1,
        password_change_required=is_limited,
    )
    return sessions.open_session(rt, session, account.id, waiting.client, is_limited=is_limited)


def _require_unchanged(session: Session, waiting: WaitingLogin) -> None:
    """Refuse what changed this very moment; nothing changes any more until the commit."""
    status, version = users_queries.lock_version(session, waiting.user_id) or (None, None)
    if version is not None and status != Status.ACTIVE:
        raise AccountDisabled
    if version != waiting.session_version:
        raise MfaFlowInvalid


def _wrong(challenge: _Challenge, attempt: int, error: AppError) -> AppError:
    """Note a wrong code and return what to answer; the last one ends the login.

    While another request completes this login, its right code is a used one to everybody else:
    they did not mistype it, they came too late.
    """
    logins, flow = flows.logins(challenge.rt), challenge.waiting.flow
    if logins.is_consumed(flow):
        return MfaFlowInvalid()
    if attempt >= MOST_ATTEMPTS:
        logins.exhaust(flow)
        error = MfaAttemptsExceeded()
    _record_failure(challenge, attempt, error)
    return error


def _record_failure(challenge: _Challenge, attempts: int, error: AppError) -> None:
    with challenge.rt.transaction() as session:
        _record(
            session,
            challenge,
            Action.USER_MFA_CHALLENGE_FAILED,
            attempt_count=attempts,
            failure_reason=error.code,
        )


def _record(
    session: Session,
    challenge: _Challenge,
    action: Action,
    *,
    entity_id: int | None = None,
    **details: Any,
) -> None:
    told = {"method": challenge.method, "flow_id": challenge.waiting.flow_id, **details}
    audit.record(
        challenge.rt,
        session,
        action,
        EntityType.MFA_FACTOR,
        client=challenge.client,
        user_id=challenge.account.id,
        entity_id=entity_id,
        entity_name=challenge.method,
        details=told,
    )
