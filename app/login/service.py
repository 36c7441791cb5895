"""Password login, and `complete_login()`, which alone decides what a proven first factor earns."""

from dataclasses import dataclass
from enum import StrEnum

from app.audit import service as audit
from app.audit.models import Action, EntityType
from app.core.client import Client
from app.core.runtime import Runtime
from app.core.tokens import TokenPair
from app.login.errors import CredentialsFailed, PasswordLoginDisabled, PendingActivation
from app.sessions import service as sessions
from app.sessions.errors import AccountDisabled
from app.settings import keys
from app.users import identifiers
from app.users import queries as users_queries
from app.users.models import Account, Status


class LoginStatus(StrEnum):
    """What a login led to."""

    AUTHENTICATED = "authenticated"
    PASSWORD_CHANGE_REQUIRED = "password_change_required"


@dataclass(frozen=True)
class LoginOutcome:
    """What to answer: a status and the pair whose cookies are written."""

    status: LoginStatus
    pair: TokenPair


@dataclass(frozen=True)
class FirstFactor:
    """A proven first factor.

    `action` and `entity_name` are what the audit log tells of it. `attempts_key` is the name under
    which failed secrets were counted; None when this factor counts none. `new_hash` replaces
    `old_hash` when the password was hashed with old parameters.
    """

    action: Action
    entity_type: EntityType
    entity_name: str
    attempts_key: str | None = None
    old_hash: str | None = None
    new_hash: str | None = None


def log_in(rt: Runtime, *, identifier: str, password: str, client: Client) -> LoginOutcome:
    """Check identifier and password.

    Raises: PasswordLoginDisabled before any lookup; RateLimited; CredentialsFailed;
    AccountDisabled and PendingActivation for the right password only.
    Source: decisions A3, A4, A11, E20; spec, Authentication 7.
    """
    if not rt.settings.get(keys.PASSWORD_LOGIN_ENABLED):
        raise PasswordLoginDisabled
    who = identifiers.identifier(identifier)
    found = users_queries.find_credentials(rt.database, who)
    account, stored_hash = found or (None, None)
    attempts_key = attempts_key_of(account, who.key)
    rt.failed_secrets.reserve(attempts_key, client.network)
    verdict = rt.passwords.check(password, stored_hash)
    if account is None or not verdict.matches:
        raise CredentialsFailed
    factor = FirstFactor(
        action=Action.USER_LOGIN,
        entity_type=EntityType.AUTH_SESSION,
        entity_name=identifier,
        attempts_key=attempts_key,
        old_hash=stored_hash,
        new_hash=verdict.new_hash,
    )
    return complete_login(rt, account, factor, client)


def complete_login(
    rt: Runtime, account: Account, factor: FirstFactor, client: Client
) -> LoginOutcome:
    """Turn a proven first factor into a session; the one seam of every way to sign in.

    `account` is as it was when the factor was proven. Raises: AccountDisabled, PendingActivation;
    CredentialsFailed when the account changed while it was being proven.
    """
    if account.status != Status.ACTIVE:
        raise AccountDisabled
    if account.activated_at is None:
        raise PendingActivation
    is_limited = sessions.is_change_forced(rt, account)
    entry = audit.entry(
        rt,
        factor.action,
        factor.entity_type,
        client=client,
        user_id=account.id,
        entity_name=factor.entity_name,
        details={"mfa_required": False, "password_change_required": is_limited},
    )
    pair = sessions.open_if_unchanged(rt, account, client, is_limited=is_limited, entry=entry)
    if pair is None:
        raise CredentialsFailed
    if factor.old_hash and factor.new_hash:
        with rt.transaction() as session:
            users_queries.replace_hash(session, account.id, factor.old_hash, factor.new_hash)
    if factor.attempts_key is not None:
        rt.failed_secrets.clear(factor.attempts_key, client.network)
    status = LoginStatus.PASSWORD_CHANGE_REQUIRED if is_limited else LoginStatus.AUTHENTICATED
    return LoginOutcome(status, pair)


def attempts_key_of(account: Account | None, typed_key: str) -> str:
    """Return the name failed secrets are counted under: the account, however it was spelled.

    Unknown identifiers are counted alike, so the limit tells nothing either (decision E20).
    """
    return f"user:{account.id}" if account else f"name:{typed_key}"
