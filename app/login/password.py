"""The first step of a login by password."""

from app.audit.models import Action, EntityType
from app.core.client import Client
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
from app.users import identifiers
from app.users import queries as users_queries
from app.users.models import Account


def log_in(
    rt: Runtime, *, identifier: str, password: str, client: Client
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
    return complete_login(rt, account, factor, client)


def check_password(
    rt: Runtime, identifier: str, password: str, client: Client
) -> tuple[Account, VerifiedPassword]:
    """Return the account of identifier and password, as it was read for the check.

    The attempt counts as failed until `complete_login` or `refund_on_failure` refunds it.
    Raises: RateLimited; CredentialsFailed, after the same work whether or not the account exists.
    """
    who = identifiers.identifier(identifier)
    account, stored_hash = users_queries.find_credentials(rt.database, who) or (None, None)
    if account is None:
        user_id, attempts_key = None, f"name:{who}"
    else:
        user_id, attempts_key = account.id, identifiers.attempts_key(account.id)
    with rt.limits.attempts.counted_attempt(attempts_key, client.network, user_id) as attempt:
        verdict = rt.passwords.check(password, stored_hash)
    if account is None or stored_hash is None or not verdict.matches:
        raise CredentialsFailed
    return account, VerifiedPassword(attempts_key, attempt, stored_hash, verdict.new_hash)
