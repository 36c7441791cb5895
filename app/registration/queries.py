"""Statements of public registration, sent to the database together in one round trip."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import bindparam, insert, select

from app.audit import queries as audit_queries
from app.contact_verification import queries as tokens_queries
from app.core.database.database import Database
from app.core.database.prepared import Prepared, Step, constant
from app.storage_policies.queries import DEFAULT_GROUP
from app.users.models import ACCOUNT_COLUMNS, Account, Status, User, with_profile
from app.users.queries import IS_EMAIL_TAKEN, IS_USERNAME_TAKEN

_COLUMNS = (
    "username",
    "username_key",
    "email",
    "password_hash",
    "role",
    "status",
    "must_change_password",
    "session_version",
    "activated_at",
    "email_verified_at",
    "storage_used",
    "storage_quota",
    "created_at",
    "updated_at",
)
_values = [bindparam(name, type_=User.__table__.c[name].type) for name in _COLUMNS]
_ADD_IF_FREE = Prepared(
    insert(User).from_select(
        [*_COLUMNS, "policy_group_id"],
        select(*_values, DEFAULT_GROUP.c.id)
        .select_from(DEFAULT_GROUP)
        .where(~IS_USERNAME_TAKEN, ~IS_EMAIL_TAKEN),
    ),
    _COLUMNS,
)
# Hashes are salted, so a row with this name and hash was inserted by this very registration.
_IDENTIFYING = ("username_key", "password_hash")
_IS_NEW_ACCOUNT = (User.username_key == bindparam("username_key")) & (
    User.password_hash == bindparam("password_hash")
)
_IS_PENDING_ACTIVATION = (
    (User.id == bindparam("account_id"))
    & (User.email == bindparam("address"))
    & (User.status == constant(Status.ACTIVE))
    & User.activated_at.is_(None)
)
STORE_FOR_NEW = tokens_queries.store_statement_for(_IS_NEW_ACCOUNT, *_IDENTIFYING)
STORE_FOR_PENDING = tokens_queries.store_statement_for(_IS_PENDING_ACTIVATION, "account_id")
_RECORD = audit_queries.add_if(_IS_NEW_ACCOUNT, *_IDENTIFYING, account=User.id)
_READ = Prepared(with_profile(select(*ACCOUNT_COLUMNS)).where(_IS_NEW_ACCOUNT), _IDENTIFYING)


def add_step(columns: Mapping[str, Any]) -> Step:
    """Return the step that inserts an account into the default group.

    `columns` are those of `users.new_account_columns`. The step inserts nothing if the username or
    the address is taken, or if there is no default group.
    """
    taken = {name: value for name, value in columns.items() if name != "policy_group_id"}
    return _ADD_IF_FREE.step(**taken)


def entry_steps(columns: Mapping[str, Any], entry: Mapping[str, Any] | None) -> list[Step]:
    """Return the step that adds the new account's audit entry; no step if `entry` is None."""
    return audit_queries.entry_steps(_RECORD, entry, **identifying_columns(columns))


def add(database: Database, steps: Sequence[Step], columns: Mapping[str, Any]) -> Account | None:
    """Run the steps of a registration; return the account, or None if it was not added.

    Raises: IntegrityError if a concurrent insert took the username or the address.
    """
    rows = database.change_then_read(*steps, _READ.step(**identifying_columns(columns)))
    return Account(*rows[0]) if rows else None


def identifying_columns(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns that identify the account being added."""
    return {name: columns[name] for name in _IDENTIFYING}
