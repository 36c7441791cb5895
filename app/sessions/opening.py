"""The statements that open a session on condition that the account is still as it was read.

What the session consumes, such as a TOTP time step, is another condition of the same statement.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, bindparam, exists, insert, select

from app.audit import queries as audit_queries
from app.core.database.database import Database
from app.core.database.prepared import Prepared
from app.core.db import Base
from app.sessions.models import LoginSession
from app.users.models import Account, User

_COLUMNS = (
    "id",
    "user_id",
    "refresh_selector",
    "refresh_digest",
    "is_limited",
    "ip_address",
    "user_agent",
    "created_at",
    "last_seen_at",
    "expires_at",
)


def if_unchanged(
    *conditions: ColumnElement[bool],
    parameters: Sequence[str] = (),
    locked: Sequence[type[Base]] = (),
) -> Prepared:
    """Return the statement that inserts a session if the account is still as it was read.

    It takes the values of _COLUMNS, status, session_version and account_created_at of the account,
    and the `parameters` of further `conditions`. The rows these find in the tables `locked` are
    locked after the account's row.
    """
    columns = LoginSession.__table__.c
    values = select(*(bindparam(name, type_=columns[name].type) for name in _COLUMNS))
    unchanged = (
        User.id == bindparam("user_id"),
        User.status == bindparam("status"),
        User.session_version == bindparam("session_version"),
        # SQLite reuses the ids of deleted accounts.
        User.created_at == bindparam("account_created_at", type_=User.created_at.type),
    )
    # FOR KEY SHARE would not wait for a concurrent change of the account; under FOR SHARE two
    # logins with one factor would deadlock when they update its row.
    chosen = values.where(*unchanged, *conditions).with_for_update(
        key_share=True, of=(User, *locked)
    )
    names = (*_COLUMNS, "status", "session_version", "account_created_at", *parameters)
    return Prepared(insert(LoginSession).from_select(_COLUMNS, chosen), names)


def session_exists() -> ColumnElement[bool]:
    """Return the condition that the session `session_id` exists."""
    wanted = bindparam("session_id", type_=LoginSession.id.type)
    return exists(select(LoginSession.id).where(LoginSession.id == wanted))


_ADD_IF_UNCHANGED = if_unchanged()
_RECORD_IF_ADDED = audit_queries.add_if(session_exists(), "session_id")


@dataclass(frozen=True)
class OneTimeUse:
    """What opening a session requires besides the account, and what it consumes.

    `opening` comes from `if_unchanged`; `values` are its further parameters by name. Each of
    `changes` takes its own values and the `session_id`. It must change exactly one row if that
    `session_exists`, else none: the last step's row count shows whether it was.
    """

    opening: Prepared
    values: Mapping[str, Any]
    changes: Sequence[tuple[Prepared, Mapping[str, Any]]] = ()


def add_if_unchanged(
    database: Database,
    account: Account,
    columns: Mapping[str, Any],
    entry: Mapping[str, Any] | None,
    use: OneTimeUse | None = None,
) -> bool:
    """Insert a session, with its audit entry, unless the account has changed since it was read.

    `entry` is None if nothing is to be recorded. False if status, session_version or the account
    itself differs, or a condition of `use` does not hold.
    """
    use = use or OneTimeUse(_ADD_IF_UNCHANGED, {})
    seen = {
        "status": account.status,
        "session_version": account.session_version,
        "account_created_at": account.created_at,
    }
    steps = [use.opening.step(**columns, **seen, **use.values)]
    steps += [change.step(**own, session_id=columns["id"]) for change, own in use.changes]
    steps += audit_queries.entry_steps(_RECORD_IF_ADDED, entry, session_id=columns["id"])
    return database.change_together(*steps) == 1
