"""Account administration for operators.

Invariant: there is always an administrator who can sign in. Any operation that may remove one, or
creates the first, holds the SETUP lock from its check to its commit.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from sqlalchemy.orm import Session

from app.administration.errors import (
    AdministratorUndeletable,
    LastAdministrator,
    NoAdministrator,
    PasswordAbsent,
)
from app.audit.models import Action
from app.avatars import upkeep as avatars
from app.contact_verification import tokens
from app.core.database import locks
from app.core.runtime import Runtime
from app.external_auth import links as external_links
from app.mfa import service as mfa
from app.passkeys import queries as passkeys_queries
from app.sessions import service as sessions
from app.settings import keys
from app.setup import queries as setup_queries
from app.setup import service as setup
from app.setup.errors import AdministratorMissing
from app.storage_policies import queries as storage_queries
from app.storage_policies import service as storage
from app.teams import service as teams
from app.users import queries as users_queries
from app.users import service as users
from app.users.models import Account, Role, Status, User
from app.web.schema import timestamp


def credentials(rt: Runtime, account: Account) -> dict[str, object]:
    """Return what an account can sign in with; `second_factor` lists what a login would ask for."""
    with rt.reading() as session:
        password_hash = users_queries.find_password_hash(session, account.id)
        passkeys = passkeys_queries.list_passkeys(session, account.id)
    return {
        "password": password_hash is not None,
        "second_factor": mfa.methods(rt, account),
        "passkeys": len(passkeys),
        "external_links": len(external_links.list_links(rt, account.id)),
    }


def create(
    rt: Runtime,
    *,
    username: str,
    email: str,
    password: str,
    role: Role = Role.USER,
    must_change_password: bool = False,
) -> Account:
    """Create an activated, verified account.

    The installation must be ready, except for the first administrator, who can thus be created
    without a browser. Raises: SystemNotInitialized, NoAdministrator and what `users.create` raises.
    """
    users.require_acceptable(rt, password, username, email)
    password_hash = rt.passwords.hash(password)
    quota = rt.settings.get(keys.DEFAULT_STORAGE_QUOTA)
    now = rt.clock.now()
    with rt.transaction() as session:
        locks.hold(session, locks.SETUP)
        group_id = _group_for(session, role)
        new = User(
            username=username,
            email=email,
            password_hash=password_hash,
            role=role,
            activated_at=now,
            email_verified_at=now,
            must_change_password=must_change_password,
            storage_quota=quota,
            policy_group_id=group_id,
        )
        account = users.create(session, new, now)
        users.record(rt, session, Action.ADMIN_CREATE_USER, account, details={"role": role})
    return account


def set_password(
    rt: Runtime, who: str, password: str, *, must_change_password: bool = False
) -> Account:
    """Replace the password and end every session.

    Links mailed earlier become invalid. Raises: UserNotFound, PasswordInvalid.
    """
    with rt.reading() as connection:
        named = users.named(connection, who)
    users.require_acceptable(rt, password, named.username, named.email)
    details = {"must_change_password": must_change_password}
    columns = {"password_hash": rt.passwords.hash(password), **details}
    with _account(rt, who) as (session, account):
        users_queries.set_columns(session, account.id, rt.clock.now(), **columns)
        sessions.revoke_all(rt, session, account.id)
        tokens.void(session, account.id)
        users.record(rt, session, Action.ADMIN_RESET_USER_PASSWORD, account, details=details)
        return users.get(session, account.id)


def set_role(rt: Runtime, who: str, role: Role) -> Account:
    """Change the role of an account; its sessions continue with the new rights.

    Raises: UserNotFound, LastAdministrator.
    """
    with _account(rt, who, locks.SETUP) as (session, account):
        if role is not Role.ADMIN:
            _require_other_admin(session, account)
        return _change(rt, session, account, ends_sessions=False, role=role)


def set_status(rt: Runtime, who: str, status: Status) -> Account:
    """Enable or disable an account.

    Raises: UserNotFound, LastAdministrator.
    """
    with _account(rt, who, locks.SETUP) as (session, account):
        if status is Status.DISABLED:
            _require_other_admin(session, account)
        return _change(rt, session, account, status=status)


def require_password_change(rt: Runtime, who: str, *, required: bool) -> Account:
    """Require the owner to change the password at the next login, or lift that requirement.

    Raises: UserNotFound, PasswordAbsent.
    """
    with _account(rt, who) as (session, account):
        if required and users_queries.find_password_hash(session, account.id) is None:
            raise PasswordAbsent
        return _change(rt, session, account, must_change_password=required)


def verify_email(rt: Runtime, who: str) -> Account:
    """Mark the address as verified; this also activates an account that is not activated yet.

    Raises: UserNotFound.
    """
    with _account(rt, who) as (session, account):
        now = rt.clock.now()
        if account.activated_at is None:
            tokens.void(session, account.id)  # the mailed activation link has become pointless
        return _change(
            rt,
            session,
            account,
            email_verified_at=account.email_verified_at or now,
            activated_at=account.activated_at or now,
        )


def set_quota(rt: Runtime, who: str, quota_bytes: int) -> Account:
    """Set the storage quota of an account; 0 means no limit.

    Raises: UserNotFound.
    """
    with _account(rt, who) as (session, account):
        return _change(rt, session, account, ends_sessions=False, storage_quota=quota_bytes)


def assign_group(rt: Runtime, who: str, group: str) -> Account:
    """Assign an account to a policy group.

    Raises: UserNotFound, GroupNotFound, NameAmbiguous, GroupUnusable.
    """
    with _account(rt, who, locks.STORAGE_TOPOLOGY) as (session, account):
        target = storage.get_group(session, group)
        storage.require_assignable(target)
        return _change(rt, session, account, ends_sessions=False, policy_group_id=target.id)


def reset_mfa(rt: Runtime, who: str) -> tuple[Account, int]:
    """Remove the second factors of an account (after a lost device, say) and end every session.

    Return the account and how many factors it had. Raises: UserNotFound.
    """
    with _account(rt, who) as (session, locked):
        removed = mfa.remove(rt, session, locked)
        sessions.revoke_all(rt, session, locked.id)
        users.record(
            rt, session, Action.ADMIN_RESET_USER_MFA, locked, details={"removed_factors": removed}
        )
        account = users.get(session, locked.id)
    mfa.discard_flows(rt, account.id)
    return account, removed


def revoke_sessions(rt: Runtime, who: str) -> int:
    """End every session of an account and void its pending flows; return how many sessions ended.

    Raises: UserNotFound.
    """
    with _account(rt, who) as (session, account):
        removed = sessions.revoke_all(rt, session, account.id)
        details = {"removed": removed}
        users.record(rt, session, Action.ADMIN_REVOKE_USER_SESSIONS, account, details=details)
    return removed


def delete(rt: Runtime, who: str) -> Account:
    """Delete an account with everything it owns; return its last state.

    Raises: UserNotFound, AdministratorUndeletable, TeamCreatorUndeletable, TeamOwnerUndeletable.
    """
    with _account(rt, who, locks.SETUP) as (session, account):
        if account.role == Role.ADMIN:
            raise AdministratorUndeletable
        teams.require_deletable(session, account.id)
        sessions.revoke_all(rt, session, account.id)  # also notifies open event streams
        users_queries.remove(session, account.id)
        users.record(
            rt, session, Action.ADMIN_FORCE_DELETE_USER, account, details={"email": account.email}
        )
    avatars.forget(rt, account.id)
    return account


@contextmanager
def _account(rt: Runtime, who: str, *before: str) -> Iterator[tuple[Session, Account]]:
    """Open a transaction that holds the locks `before` and the named account, in this order."""
    with rt.transaction() as session:
        for lock in before:
            locks.hold(session, lock)
        yield session, users.lock_named(session, who)


def _group_for(session: Session, role: Role) -> int | None:
    """Return the policy group of a new account; None if the first admin precedes any group."""
    if role is Role.ADMIN and not setup_queries.facts(session).has_admin:
        return storage_queries.find_default_group_id(session)
    try:
        return setup.get_group_id_for_new_account(session)
    except AdministratorMissing:
        raise NoAdministrator from None


def _require_other_admin(session: Session, account: Account) -> None:
    is_admin = account.role == Role.ADMIN
    if is_admin and not users_queries.is_other_admin_active(session, account.id):
        raise LastAdministrator


def _change(
    rt: Runtime, session: Session, account: Account, *, ends_sessions: bool = True, **values: Any
) -> Account:
    """Write the values that differ and audit them; do nothing if none differs."""
    changed = {name: new for name, new in values.items() if getattr(account, name) != new}
    if not changed:
        return account
    users_queries.set_columns(session, account.id, rt.clock.now(), **changed)
    if ends_sessions:
        sessions.revoke_all(rt, session, account.id)
    details = {
        name: timestamp(value) if isinstance(value, datetime) else value
        for name, value in changed.items()
    }
    users.record(rt, session, Action.ADMIN_UPDATE_USER, account, details=details)
    return users.get(session, account.id)
