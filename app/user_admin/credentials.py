"""What an account signs in with, and what operators take away or reset.

The owner is notified by mail. Operators cannot act on their own account here: its settings ask for
the proof that is due.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from app.audit.models import Action
from app.core.access import Operator
from app.core.runtime import Runtime
from app.external_auth import links
from app.external_auth.models import Identity
from app.login import sign_in_methods
from app.login.errors import LastWayIn
from app.mfa import management as mfa_management
from app.mfa import service as mfa
from app.mfa.models import MfaFactor, MfaMethod
from app.passkeys import management as passkeys
from app.passkeys import queries as passkeys_queries
from app.passkeys.models import Passkey
from app.sessions import queries as sessions_queries
from app.sessions import service as sessions
from app.user_admin.service import locked, require_not_own
from app.users import identifiers
from app.users import queries as users_queries
from app.users import service as users
from app.users.models import Account


@dataclass(frozen=True)
class Credentials:
    """What an account can sign in with, and how its sign-ins have gone.

    `second_factor` lists what a login would ask for. `last_sign_in_at` is of the sessions that are
    still stored. `failed_attempts` and `locked_until` are those of the network that failed most;
    the former is None while Redis is away.
    """

    has_password: bool
    second_factor: Sequence[MfaMethod]
    factors: Sequence[MfaFactor]
    recovery_codes_remaining: int
    passkeys: Sequence[Passkey]
    external_links: Sequence[Identity]
    live_sessions: int
    last_sign_in_at: datetime | None
    failed_attempts: int | None
    locked_until: datetime | None


def summarize(rt: Runtime, who: str | int) -> Credentials:
    """Return what an account can sign in with.

    Raises: UserNotFound.
    """
    with rt.reading() as session:
        account = users.named(session, who)
        password_hash = users_queries.find_password_hash(session, account.id)
        live, last = sessions_queries.count_live(session, account.id, rt.clock.now())
    factors = mfa_management.show(rt, account.id)
    failures = rt.limits.attempts.find_failures(identifiers.attempts_key(account.id))
    return Credentials(
        has_password=password_hash is not None,
        second_factor=mfa.methods(rt, account),
        factors=factors.factors,
        recovery_codes_remaining=factors.recovery_codes_remaining,
        passkeys=passkeys.list_passkeys(rt, account.id),
        external_links=links.list_links(rt, account.id),
        live_sessions=live,
        last_sign_in_at=last,
        failed_attempts=failures.attempts if failures else None,
        locked_until=failures.locked_until if failures else None,
    )


def reset_mfa(rt: Runtime, by: Operator, who: str | int) -> tuple[Account, int]:
    """Remove the second factors of an account (after a lost device, say) and end every session.

    Return the account and how many factors it had. Raises: errors.RESET_MFA.
    """
    with locked(rt, by, who) as (session, account):
        require_not_own(by, account)
        removed = mfa.remove(rt, session, account)
        sessions.revoke_all(rt, session, account.id)
        details = {"removed_factors": removed}
        users.record_by(rt, session, by, Action.ADMIN_RESET_USER_MFA, account, details)
        account = users.get(session, account.id)
    mfa.discard_flows(rt, account.id)
    return account, removed


def remove_passkey(
    rt: Runtime, by: Operator, who: str | int, passkey_id: int, *, is_forced: bool = False
) -> Account:
    """Remove a passkey; sessions go on. The last way to sign in goes only if it is forced.

    Raises: errors.REMOVE_PASSKEY.
    """
    can_sign_in = sign_in_methods.by_any_method(rt)
    with locked(rt, by, who) as (session, account):
        require_not_own(by, account)
        passkey = passkeys_queries.get_passkey(session, account.id, passkey_id)
        passkeys_queries.remove(session, passkey)
        is_last = not passkeys_queries.has_passkey(session, account.id)
        if is_last and not is_forced and not can_sign_in(session, account.id):
            raise LastWayIn
        details = {"passkey_id": passkey.id, "name": passkey.name}
        users.record_by(rt, session, by, Action.ADMIN_REMOVE_USER_PASSKEY, account, details)
        users.notify_owner(rt, session, account, passkeys.Notice.REMOVED)
    return account


def remove_link(
    rt: Runtime, by: Operator, who: str | int, link_id: int, *, is_forced: bool = False
) -> Account:
    """Remove a sign-in by another service; otherwise like `remove_passkey`.

    Raises: errors.REMOVE_LINK.
    """
    can_sign_in = sign_in_methods.by_any_method(rt)
    with locked(rt, by, who) as (session, account):
        require_not_own(by, account)
        link = links.take(session, account, link_id)
        if not is_forced and not can_sign_in(session, account.id):
            raise LastWayIn
        details = {"link_id": link.id, **links.details(link)}
        users.record_by(rt, session, by, Action.ADMIN_REMOVE_USER_EXTERNAL_LINK, account, details)
        users.notify_owner(rt, session, account, links.removal_notice(link))
    return account


def unlock(rt: Runtime, by: Operator, who: str | int) -> Account:
    """Forget the failed sign-ins of an account, from wherever they came.

    Not for the operator's own account: that would give somebody who has stolen the session
    unlimited guesses at the password. Raises: errors.UNLOCK; RedisError, which changes nothing
    but the audit log.
    """
    with locked(rt, by, who) as (session, account):
        require_not_own(by, account)
        users.record_by(rt, session, by, Action.ADMIN_UNLOCK_USER, account)
    rt.limits.attempts.clear_all(identifiers.attempts_key(account.id))
    return account
