"""What operators do to accounts.

Invariant: there is always an administrator who can sign in. Any operation that may remove one, or
creates the first, holds the SETUP lock from its check to its commit.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from sqlalchemy.orm import Session

from app.audit.models import Action
from app.contact_verification import tokens
from app.core.access import Operator
from app.core.config import Bucket
from app.core.runtime import Runtime
from app.own_data import erasure
from app.sessions import service as sessions
from app.settings import keys
from app.setup import queries as setup_queries
from app.setup import service as setup
from app.setup.errors import AdministratorMissing
from app.storage_policies import queries as storage_queries
from app.storage_policies import service as storage
from app.store import locks
from app.user_admin.errors import (
    AccountChanged,
    AdministratorUndeletable,
    LastAdministrator,
    NoAdministrator,
    NotThatUser,
    OwnAccount,
    PasswordAbsent,
)
from app.users import queries as users_queries
from app.users import service as users
from app.users.models import Account, Role, Status, User
from app.web.schema import timestamp

ROLE_CHANGES = Bucket(per_second=20 / 3600, burst=20)
# What changes while the sessions of an account go on.
GOES_ON = {"role", "storage_quota", "policy_group_id"}


def create(
    rt: Runtime,
    by: Operator,
    *,
    username: str,
    email: str,
    password: str,
    role: Role = Role.USER,
    must_change_password: bool = False,
    storage_quota: int | None = None,
    policy_group: str | int | None = None,
) -> Account:
    """Create an activated, verified account.

    The installation must be ready, except for the first administrator, who can thus be created
    without a browser. None for the quota or the group means the default one.
    Raises: errors.CREATE_USER, NoAdministrator, NameAmbiguous, RateLimited.
    """
    _limit_role_changes(rt, by, is_change=role is Role.ADMIN)
    users.require_acceptable(rt, password, username, email)
    password_hash = rt.passwords.hash(password)
    if storage_quota is None:
        storage_quota = rt.settings.get(keys.DEFAULT_STORAGE_QUOTA)
    now = rt.clock.now()
    with rt.transaction() as session:
        locks.hold(session, locks.SETUP)
        group_id = group_for(session, role)
        if policy_group is not None:
            locks.hold(session, locks.STORAGE_TOPOLOGY)
            group_id = storage.get_assignable(session, policy_group).id
        new = User(
            username=username,
            email=email,
            password_hash=password_hash,
            role=role,
            activated_at=now,
            email_verified_at=now,
            proven_at=now,
            must_change_password=must_change_password,
            storage_quota=storage_quota,
            policy_group_id=group_id,
        )
        account = users.create(session, new, now)
        users.record_by(rt, session, by, Action.ADMIN_CREATE_USER, account, {"role": role})
        if role is Role.ADMIN:
            event = f"The account {account.username} was created as an administrator"
            users.notify_administrators(rt, session, by, event)
    return account


def set_password(
    rt: Runtime,
    by: Operator,
    who: str | int,
    password: str,
    *,
    must_change_password: bool = False,
) -> Account:
    """Replace the password and end every session; the owner is notified by mail.

    Links mailed earlier become invalid. Raises: errors.SET_PASSWORD.
    """
    with rt.reading() as session:
        named = users.named(session, who)
    users.require_acceptable(rt, password, named.username, named.email)
    details = {"must_change_password": must_change_password}
    columns = {"password_hash": rt.passwords.hash(password), **details}
    with locked(rt, by, who) as (session, account):
        require_not_own(by, account)
        users_queries.set_columns(session, account.id, rt.clock.now(), **columns)
        sessions.revoke_all(rt, session, account.id)
        tokens.void(session, account.id)
        users.record_by(rt, session, by, Action.ADMIN_RESET_USER_PASSWORD, account, details)
        users.notify_owner(rt, session, account, "An administrator set a new password.")
        if account.role == Role.ADMIN:
            event = f"A new password was set for the administrator {account.username}"
            users.notify_administrators(rt, session, by, event)
        return users.get(session, account.id)


def update(
    rt: Runtime,
    by: Operator,
    who: str | int,
    *,
    policy_group: str | int | None = None,
    expected_updated_at: datetime | None = None,
    **changes: Any,
) -> Account:
    """Change `role`, `status`, `must_change_password`, `email_verified` or `storage_quota`.

    All of them or none; what already has its new value is left alone. Another role, quota or group
    leaves the sessions of the account running, anything else ends them. Verifying the address also
    activates an account that waits for it. `expected_updated_at` is the state the change is meant
    for; None accepts any.
    Raises: errors.UPDATE_USER, NameAmbiguous, RateLimited.
    """
    if "role" in changes:
        with rt.reading() as session:
            is_new = users.named(session, who).role != changes["role"]
        _limit_role_changes(rt, by, is_change=is_new)
    with locked(rt, by, who, locks.SETUP, locks.STORAGE_TOPOLOGY) as (session, account):
        if expected_updated_at not in (None, account.updated_at):
            raise AccountChanged
        if policy_group is not None:
            changes["policy_group_id"] = storage.get_assignable(session, policy_group).id
        changed = _columns(account, changes, rt.clock.now())
        if not changed:
            return account
        _require_changeable(session, by, account, changed)
        return _change(rt, session, by, account, changed)


def revoke_sessions(rt: Runtime, by: Operator, who: str | int) -> int:
    """End every session of an account and void its pending flows; return how many sessions ended.

    Raises: UserNotFound.
    """
    with locked(rt, by, who) as (session, account):
        by = by.rechecked(session)  # it may be the operator's own account
        removed = sessions.revoke_all(rt, session, account.id)
        details = {"removed": removed}
        users.record_by(rt, session, by, Action.ADMIN_REVOKE_USER_SESSIONS, account, details)
    return removed


def delete(rt: Runtime, by: Operator, who: str | int, *, confirm: str | None = None) -> Account:
    """Delete an account with everything it owns; return its last state.

    `confirm` is the username that the operator believes the account to have; None is no check.
    Raises: errors.DELETE_USER.
    """
    with locked(rt, by, who, locks.SETUP) as (session, account):
        if confirm is not None and confirm.lower() != account.username.lower():
            raise NotThatUser
        if account.role == Role.ADMIN:
            raise AdministratorUndeletable
        erasure.delete(rt, session, account)
        details = {"email": account.email}
        users.record_by(rt, session, by, Action.ADMIN_FORCE_DELETE_USER, account, details)
    erasure.clear_up(rt, account.id)
    return account


@contextmanager
def locked(
    rt: Runtime, by: Operator, who: str | int, *before: str
) -> Iterator[tuple[Session, Account]]:
    """Open a transaction that holds the locks `before` and the account, in this order.

    Raises: UserNotFound; ClosedToTokens for a program and an administrator's account.
    """
    with rt.transaction() as session:
        for lock in before:
            locks.hold(session, lock)
        account = users.lock_named(session, who)
        users.require_open_to(by, account)
        yield session, account


def require_not_own(by: Operator, account: Account) -> None:
    """Refuse what the owner of an account does elsewhere, where it asks for a proof.

    Raises: OwnAccount.
    """
    if account.id == by.user_id:
        raise OwnAccount


def group_for(session: Session, role: Role) -> int | None:
    """Return the policy group of a new account; None if the first admin precedes any group."""
    if role is Role.ADMIN and not setup_queries.facts(session).has_admin:
        return storage_queries.find_default_group_id(session)
    try:
        return setup.get_group_id_for_new_account(session)
    except AdministratorMissing:
        raise NoAdministrator from None


def _columns(account: Account, changes: dict[str, Any], now: datetime) -> dict[str, Any]:
    """Return the columns whose value changes."""
    values = dict(changes)
    if (verified := values.pop("email_verified", None)) is not None:
        values["email_verified_at"] = (account.email_verified_at or now) if verified else None
        values["proven_at"] = (account.proven_at or now) if verified else None
        values["activated_at"] = account.activated_at or (now if verified else None)
    return {name: new for name, new in values.items() if getattr(account, name) != new}


def _require_changeable(
    session: Session, by: Operator, account: Account, changed: dict[str, Any]
) -> None:
    """Refuse a change that shuts somebody out."""
    loses = {
        "role": "take the role away from yourself",
        "status": "disable yourself",
        "email_verified_at": "take the verification of your own address back",
        "must_change_password": "force yourself to change the password",
    }
    lost = [name for name in loses if name in changed and _is_loss(name, changed[name])]
    if lost and account.id == by.user_id:
        raise OwnAccount(f"You cannot {loses[lost[0]]}.")
    if {"role", "status", "email_verified_at"} & set(lost):
        require_other_admin(session, account)
    is_forced = "must_change_password" in lost
    if is_forced and users_queries.find_password_hash(session, account.id) is None:
        raise PasswordAbsent


def _is_loss(column: str, value: Any) -> bool:
    gains = {"role": Role.ADMIN, "status": Status.ACTIVE, "must_change_password": False}
    return value is None or (column in gains and value != gains[column])


def require_other_admin(session: Session, account: Account) -> None:
    """Refuse what removes the last administrator who can sign in; the lock SETUP is held.

    Raises: LastAdministrator.
    """
    is_admin = account.role == Role.ADMIN
    if is_admin and not users_queries.is_other_admin_active(session, account.id):
        raise LastAdministrator


def _change(
    rt: Runtime, session: Session, by: Operator, account: Account, changed: dict[str, Any]
) -> Account:
    if changed.get("activated_at"):
        tokens.void(session, account.id)  # the mailed activation link has become pointless
    users_queries.set_columns(session, account.id, rt.clock.now(), **changed)
    if changed.keys() - GOES_ON:
        sessions.revoke_all(rt, session, account.id, keeps_tokens=True)
    details: dict[str, object] = {"changed_fields": sorted(changed)}
    for name, value in changed.items():
        details[name], details[f"previous_{name}"] = _shown(value), _shown(getattr(account, name))
    users.record_by(rt, session, by, Action.ADMIN_UPDATE_USER, account, details)
    _tell_of_administrators(rt, session, by, account, changed)
    return users.get(session, account.id)


def _limit_role_changes(rt: Runtime, by: Operator, *, is_change: bool) -> None:
    """Slow down whoever has stolen an administrator's session, but not an operator at a shell."""
    if is_change and by.user_id is not None and rt.config.rate_limits:
        rt.limits.rates.take("admin_role_changes", ROLE_CHANGES, str(by.user_id))


def _shown(value: Any) -> Any:
    return timestamp(value) if isinstance(value, datetime) else value


def _tell_of_administrators(
    rt: Runtime, session: Session, by: Operator, account: Account, changed: dict[str, Any]
) -> None:
    """Mail administrators about changes to who they are, including whoever is no longer one."""
    name = account.username
    if changed.get("role") == Role.ADMIN:
        event = f"The account {name} was made an administrator"
    elif account.role == Role.ADMIN and "role" in changed:
        event = f"The role of an administrator was taken away from {name}"
    elif account.role == Role.ADMIN and changed.get("status") == Status.DISABLED:
        event = f"The administrator {name} was disabled"
    else:
        return
    users.notify_administrators(rt, session, by, event)
    if account.role == Role.ADMIN:
        users.notify_administrator(rt, session, by, account, event)
