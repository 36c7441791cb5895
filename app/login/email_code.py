"""Signing in with a code by e-mail: it goes to the address, and is typed where the sign-in began.

Never a link: what opens links in mails is not always a person, nor the browser that asked.

Nobody learns from it which addresses have accounts. Each start gets a flow that judges and counts
codes; without a mail, no code is right. What became of the account shows only to the right code.
Invariant: a flow is consumed, once, before it opens a session, and reopened only if it is certain
that none was opened.
"""

from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta

from redis.exceptions import RedisError
from sqlalchemy.orm import Session

from app.audit.models import Action, EntityType
from app.core.client import Client, SignInWish
from app.core.config import Bucket
from app.core.errors import AppError, RateLimited
from app.core.runtime import Runtime
from app.crypto.tokens import digest, random_digits, random_hex
from app.login import sign_in_methods
from app.login.completion import (
    FirstFactor,
    FirstFactorKind,
    LoginOutcome,
    MfaRequired,
    complete_login,
    is_rolled_back,
)
from app.login.errors import CredentialsFailed
from app.login.password import record_refusal
from app.mail import service as mail
from app.mail.templates import Template
from app.mfa import email_codes
from app.mfa import service as mfa
from app.mfa.errors import MfaAttemptsExceeded, MfaCodeInvalid, MfaFlowInvalid
from app.settings import keys
from app.store.flow_store import Flow
from app.store.limits import is_verdict
from app.users import identifiers
from app.users import queries as users_queries
from app.users import service as users
from app.users.models import Account, Status

PREFIX = "emc_"
PURPOSE = "email-sign-in"
MAX_ATTEMPTS = 5


@dataclass(frozen=True)
class Started:
    """A sign-in that waits for its code; another one can be had in `resend_after` seconds."""

    flow_token: str = field(repr=False)
    expires_in: int
    resend_after: int


@dataclass(frozen=True)
class Guess:
    """A code that was typed for a flow, by the account of its address; None if it has none.

    `attempt` is the unique name under which it counts.
    """

    flow: Flow
    account: Account | None
    client: Client
    attempts_key: str = field(repr=False)
    attempt: str = field(default_factory=random_hex)


def start(rt: Runtime, *, email: str, client: Client) -> Started:
    """Mail a code to an account with this verified address; the answer is alike for all others.

    Codes that were mailed before stay good. Raises: errors.START_EMAIL_CODE.
    """
    sign_in_methods.require_email_code_sign_in(rt)
    address = identifiers.email(email)
    seconds = rt.settings.get(keys.EMAIL_CODE_TTL_SECONDS)
    with rt.reading() as session:
        account = users_queries.find_by_identifier(session, address)
    code = None
    if account is not None and _may_be_mailed(rt, account, client):
        code = random_digits(email_codes.DIGITS)
    token = _open_flow(rt, address, account, code, timedelta(seconds=seconds))
    if account is not None and code is not None:
        _mail(rt, account, code, seconds)
    return Started(token, seconds, rt.settings.get(keys.EMAIL_CODE_COOLDOWN_SECONDS))


def finish(
    rt: Runtime, *, flow_token: str, code: str, client: Client, wish: SignInWish
) -> LoginOutcome | MfaRequired:
    """Sign in with the code that was mailed; an account with an authenticator app needs that, too.

    Raises: errors.FINISH_EMAIL_CODE, RateLimited. The fifth wrong code ends the flow.
    """
    sign_in_methods.require_email_code_sign_in(rt)
    guess = _guess(rt, mfa.get_open(mfa.email_sign_ins(rt), flow_token), client)
    number = _take_attempt(rt, guess)
    try:
        account = _checked(rt, guess, code)
        rt.limits.attempts.give_back(guess.attempts_key, client.network, guess.attempt)
        outcome = _complete(rt, guess, account, wish)
    except MfaCodeInvalid as error:
        raise _wrong(rt, guess, number, error) from None
    except BaseException as error:
        if not is_verdict(error):
            _give_back(rt, guess)
        raise
    if isinstance(outcome, LoginOutcome):
        rt.limits.attempts.clear(guess.attempts_key, client.network, guess.attempt)
    return outcome


def _may_be_mailed(rt: Runtime, account: Account, client: Client) -> bool:
    """Return whether a code goes out, and count it if so."""
    if not _is_open_to(account):
        return False
    seconds = rt.settings.get(keys.EMAIL_CODE_COOLDOWN_SECONDS)
    pause = Bucket(per_second=1 / seconds, burst=1)
    try:
        rt.limits.rates.take("email-code-pause", pause, f"{account.id}:{client.network}")
        mail.limit_requested_mail(rt, "email-code-mails-to", digest(account.email))
    except RateLimited:
        return False
    return True


def _open_flow(
    rt: Runtime, address: str, account: Account | None, code: str | None, lifetime: timedelta
) -> str:
    """Store a sign-in and return its token; without a code, none is right."""
    salt, code_hash = random_hex(), ""
    if account is not None and code is not None:
        code_hash = rt.secret_box.keyed_hash(_bound(account, salt, code), PURPOSE)
    user_id = account.id if account else None
    data = {
        "user_id": user_id,
        "session_version": account.session_version if account else None,
        "address": rt.secret_box.seal(address, PURPOSE),
        "salt": salt,
        "code_hash": code_hash,
    }
    return mfa.email_sign_ins(rt).open(user_id, data, lifetime, PREFIX)


def _is_open_to(account: Account) -> bool:
    is_active = account.status == Status.ACTIVE and account.activated_at is not None
    return is_active and account.email_verified_at is not None


def _mail(rt: Runtime, found: Account, code: str, seconds: int) -> None:
    expires_at = rt.clock.now() + timedelta(seconds=seconds)
    with rt.transaction() as session:
        account = users_queries.lock_and_find(session, found.id)
        if account is not None and account.email == found.email and _is_open_to(account):
            mail.queue(
                rt,
                session,
                Template.SIGN_IN_CODE,
                account.email,
                expires_at=expires_at,
                language=account.language,
                is_answer=True,
                lifetime=seconds,
                username=account.username,
                code=code,
            )


def _guess(rt: Runtime, flow: Flow, client: Client) -> Guess:
    user_id = flow.data["user_id"]
    if user_id is None:
        address = rt.secret_box.open(flow.data["address"], PURPOSE)
        return Guess(flow, None, client, identifiers.unknown_attempts_key(address))
    with rt.reading() as session:
        account = users_queries.find_account(session, user_id)
    return Guess(flow, account, client, identifiers.attempts_key(user_id))


def _take_attempt(rt: Runtime, guess: Guess) -> int:
    """Take one of the flow's attempts and one of the account's slots, before a code is examined.

    Return the attempt's number, counted from 1. Raises: MfaFlowInvalid, RateLimited.
    """
    number = mfa.email_sign_ins(rt).take_attempt(guess.flow, guess.attempt, MAX_ATTEMPTS)
    if not number:
        raise MfaFlowInvalid
    try:
        rt.limits.attempts.reserve(
            guess.attempts_key,
            guess.client.network,
            guess.flow.data["user_id"],
            attempt=guess.attempt,
        )
    except RateLimited:
        _return_to_flow(rt, guess)
        raise
    return number


def _checked(rt: Runtime, guess: Guess, code: str) -> Account:
    """Return the account of a right code.

    Raises: MfaCodeInvalid; AccountDisabled, PendingActivation; MfaFlowInvalid if its sessions were
    ended since the start.
    """
    account, data = guess.account, guess.flow.data
    digits = email_codes.normalised(code)
    if account is None or digits is None or not data["code_hash"]:
        raise MfaCodeInvalid
    bound = _bound(account, data["salt"], digits)
    if not rt.secret_box.is_keyed_hash(bound, data["code_hash"], PURPOSE):
        raise MfaCodeInvalid
    users.require_sign_in_allowed(account)
    if account.session_version != data["session_version"] or account.email_verified_at is None:
        raise MfaFlowInvalid
    return account


def _complete(
    rt: Runtime, guess: Guess, account: Account, wish: SignInWish
) -> LoginOutcome | MfaRequired:
    flows = mfa.email_sign_ins(rt)
    if not flows.consume(guess.flow, guess.attempt):
        raise MfaFlowInvalid

    def prove(session: Session) -> None:
        users_queries.prove_address(session, account, rt.clock.now())

    factor = FirstFactor(
        kind=FirstFactorKind.EMAIL_CODE,
        action=Action.USER_EMAIL_CODE_SIGN_IN,
        entity_type=EntityType.AUTH_SESSION,
        entity_name=account.username,
        consume=prove,
        flow=guess.flow.name,
    )
    try:
        return complete_login(rt, account, factor, guess.client, wish)
    except CredentialsFailed:  # the account has changed while this waited for its lock
        raise MfaFlowInvalid from None
    except BaseException as error:
        if is_rolled_back(error):
            with suppress(RedisError):  # then the flow stays consumed, which is safe
                flows.reopen(guess.flow, guess.attempt)
        raise


def _wrong(rt: Runtime, guess: Guess, number: int, error: AppError) -> AppError:
    """Record a wrong code and return the error to raise; the last attempt ends the flow."""
    flows = mfa.email_sign_ins(rt)
    if flows.is_consumed(guess.flow):
        return MfaFlowInvalid()  # another request has just completed it
    if number >= MAX_ATTEMPTS:
        flows.exhaust(guess.flow)
        error = MfaAttemptsExceeded()
    if guess.account is not None:
        record_refusal(rt, guess.account, guess.client, method=FirstFactorKind.EMAIL_CODE)
    return error


def _give_back(rt: Runtime, guess: Guess) -> None:
    """Undo `_take_attempt`, if no code was judged or the verdict had no effect."""
    rt.limits.attempts.give_back(guess.attempts_key, guess.client.network, guess.attempt)
    _return_to_flow(rt, guess)


def _return_to_flow(rt: Runtime, guess: Guess) -> None:
    with suppress(RedisError):  # then the attempt stays spent
        mfa.email_sign_ins(rt).give_back(guess.flow, guess.attempt)


def _bound(account: Account, salt: str, code: str) -> str:
    # Includes the address: a code mailed to a former address must not open the account.
    return f"{account.id}:{salt}:{account.email}:{code}"
