"""The first step of a login by password."""

import logging
from datetime import timedelta

from app.audit import queries as audit_queries
from app.audit import service as audit
from app.audit.models import Action, EntityType, Event
from app.core.client import Client, SignInWish
from app.core.clock import SKEW
from app.core.runtime import Runtime
from app.login import sign_in_methods
from app.login.completion import (
    FirstFactor,
    FirstFactorKind,
    LoginOutcome,
    MfaRequired,
    VerifiedPassword,
    complete_login,
)
from app.login.errors import CredentialsFailed
from app.store.database import DATABASE_ERRORS, reason_of
from app.users import identifiers
from app.users import queries as users_queries
from app.users.models import Account

log = logging.getLogger(__name__)

# Of one account: guessing must not fill the audit log.
MAX_REFUSALS = 20
REFUSALS_WITHIN = timedelta(hours=1)


def log_in(
    rt: Runtime, *, identifier: str, password: str, client: Client, wish: SignInWish
) -> LoginOutcome | MfaRequired:
    """Check identifier and password.

    Raises: PasswordLoginDisabled before any lookup; RateLimited; CredentialsFailed;
    AccountDisabled and PendingActivation for the right password only.
    """
    sign_in_methods.require_password_login(rt)
    account, verified = check_password(rt, identifier, password, client)
    factor = FirstFactor(
        kind=FirstFactorKind.PASSWORD,
        action=Action.USER_LOGIN,
        entity_type=EntityType.AUTH_SESSION,
        entity_name=identifier,
        password=verified,
    )
    return complete_login(rt, account, factor, client, wish)


def check_password(
    rt: Runtime, identifier: str, password: str, client: Client
) -> tuple[Account, VerifiedPassword]:
    """Return the account of identifier and password, as it was read for the check.

    The attempt counts as failed until `complete_login` or `refund_on_failure` refunds it.
    Raises: RateLimited; CredentialsFailed, after the same work whether or not the account exists.
    """
    who = identifiers.identifier(identifier)
    account, stored_hash, samples = users_queries.find_credentials(rt.database, who)
    if account is None:
        user_id, attempts_key = None, f"name:{who}"
    else:
        user_id, attempts_key = account.id, identifiers.attempts_key(account.id)
    with rt.limits.attempts.counted_attempt(attempts_key, client.network, user_id) as attempt:
        verdict = rt.passwords.check(password, stored_hash, samples)
    if account is None or stored_hash is None or not verdict.matches:
        if account is not None:
            _record_refusal(rt, account, client)
        raise CredentialsFailed
    return account, VerifiedPassword(attempts_key, attempt, stored_hash, verdict.new_hash)


def _record_refusal(rt: Runtime, account: Account, client: Client) -> None:
    """Record that a password was refused, for its owner to see; failing to do so is only logged.

    The account stays locked from the count to the commit: however many guess at once, no more are
    recorded.
    """
    action, now = Action.USER_LOGIN_FAILED, rt.clock.now()
    since, until = now - REFUSALS_WITHIN, now + SKEW
    earlier = audit_queries.EntryFilter(user_id=account.id, action=action, since=since, until=until)
    event = Event(action, EntityType.AUTH_SESSION, client, account.id, entity_name=account.username)
    try:
        with rt.transaction() as session:
            if users_queries.lock_and_find(session, account.id) is None:
                return
            conditions = audit_queries.matching(earlier)
            if audit_queries.count_up_to(session, MAX_REFUSALS, *conditions) < MAX_REFUSALS:
                audit.record(rt, session, event)
    except DATABASE_ERRORS as error:
        log.warning("%s could not be recorded: %s", action, reason_of(error))
