"""The statements that open a session for an account which is as it was read.

What such a session uses up, say a time step of an authenticator app, is part of its statement.
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
    """Return the statement that inserts a session for an account that is as it was read.

    It takes the values of _COLUMNS, status, session_version and account_created_at of the account,
    and the `parameters` of further conditions, whose tables are locked after the account's row.
    """
    columns = LoginSession.__table__.c
    values = select(*(bindparam(name, type_=columns[name].type) for name in _COLUMNS))
    unchanged = (
        User.id == bindparam("user_id"),
        User.status == bindparam("status"),
        User.session_version == bindparam("session_version"),
        # SQLite gives the id of a deleted account to the next one.
        User.created_at == bindparam("account_created_at", type_=User.created_at.type),
    )
    # Not FOR SHARE: it would let a change of the account through that is just being made.
    chosen = values.where(*unchanged, *conditions).with_for_update(
        key_share=True, of=(User, *locked)
    )
    names = (*_COLUMNS, "status", "session_version", "account_created_at", *parameters)
    return Prepared(insert(LoginSession).from_select(_COLUMNS, chosen), names)


def was_opened() -> ColumnElement[bool]:
    """Return the condition that the session `session_id` is there."""
    wanted = bindparam("session_id", type_=LoginSession.id.type)
    return exists(select(LoginSession.id).where(LoginSession.id == wanted))


_ADD_IF_UNCHANGED = if_unchanged()
_RECORD_IF_ADDED = audit_queries.add_if(was_opened(), "session_id")


@dataclass(frozen=True)
class OneTimeUse:
    """What opening a session depends on besides the account, and what it changes with it.

    `opening` is made by `if_unchanged`, `values` are those of its further conditions by name.
    Each of `changes` takes its own values and the `session_id`. It changes nothing unless that
    session `was_opened`, and then one row: the last step's count tells whether it was.
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

    `entry` is None where nothing is recorded. False: status, session_version or the whole
    account is another, or what `use` depends on does not hold.
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
