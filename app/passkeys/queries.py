"""Statements on passkeys."""

import json
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    Boolean,
    bindparam,
    delete,
    exists,
    insert,
    literal_column,
    or_,
    select,
    update,
)
from sqlalchemy.orm import Session

from app.core.database import bulk
from app.core.database.database import Database
from app.core.database.lookups import Lookup
from app.core.database.prepared import Prepared, chosen, constant, per_database
from app.core.db import UTCDateTime, columns_of
from app.passkeys.errors import PasskeyNotFound
from app.passkeys.models import Passkey, PasskeyHandle
from app.sessions import opening
from app.sessions.opening import OneTimeUse
from app.users.models import ACCOUNT_COLUMNS, Account, User, with_profile

# A runaway client may register thousands; listing them all would block a worker, and every request
# it serves, for seconds.
MAX_LISTED = 500
_BY_CREDENTIAL_ID = Lookup(
    with_profile(
        select(
            Passkey.id,
            Passkey.name,
            Passkey.public_key,
            Passkey.sign_count,
            Passkey.backup_eligible,
            PasskeyHandle.handle,
            *ACCOUNT_COLUMNS,
        )
        .join(User, User.id == Passkey.user_id)
        .join(PasskeyHandle, PasskeyHandle.user_id == Passkey.user_id)
    ),
    Passkey.credential_id,
)
_COUNT = bindparam("sign_count", type_=BigInteger)
_IS_PASSKEY = (
    Passkey.id == bindparam("passkey_id"),
    # The id alone is not enough: SQLite may reuse the ids of deleted rows.
    Passkey.credential_id == bindparam("credential"),
)
_OPEN = opening.if_unchanged(
    Passkey.user_id == User.id,
    *_IS_PASSKEY,
    # Counters are never negative, so the sum is 0 only if both are: the authenticator has none.
    or_(Passkey.sign_count < _COUNT, (Passkey.sign_count + _COUNT) == literal_column("0")),
    parameters=("passkey_id", "credential", "sign_count"),
    locked=(Passkey,),
)
_USE = Prepared(
    update(Passkey)
    .where(*_IS_PASSKEY, opening.session_exists())
    .values(
        sign_count=bindparam("new_count", type_=BigInteger),
        backed_up=bindparam("new_backed_up", type_=Boolean),
        last_used_at=bindparam("now", type_=UTCDateTime),
        updated_at=bindparam("now", type_=UTCDateTime),
    ),
    ("passkey_id", "credential", "new_count", "new_backed_up", "now", "session_id"),
)
_ADD = per_database(
    lambda insert_into: (
        insert_into(Passkey)
        .on_conflict_do_nothing(index_elements=[Passkey.credential_id])
        .returning(Passkey.id)
    )
)


class ListedPasskey(NamedTuple):
    """A passkey as its owner sees it; `transports` is a JSON list, None if none were reported."""

    id: int
    name: str
    transports: str | None
    backup_eligible: bool
    backed_up: bool
    sign_count: int
    created_at: datetime
    updated_at: datetime
    last_used_at: datetime | None


_LISTED_COLUMNS = columns_of(ListedPasskey, Passkey)
_LIST = Lookup(select(*_LISTED_COLUMNS), Passkey.user_id, most=MAX_LISTED + 1)
_FIRST = Prepared(
    select(*_LISTED_COLUMNS)
    .where(Passkey.user_id == bindparam("user_id"))
    .order_by(
        Passkey.last_used_at.desc().nulls_last(), Passkey.created_at.desc(), Passkey.id.desc()
    )
    .limit(constant(MAX_LISTED))
    .offset(constant(0)),
    ("user_id",),
)


class PasskeyWithAccount(NamedTuple):
    """A stored passkey with its account, as a sign-in needs it."""

    id: int
    name: str
    public_key: bytes
    sign_count: int
    backup_eligible: bool
    handle: str
    account: Account


def find_by_credential_id(database: Database, credential_id: str) -> PasskeyWithAccount | None:
    """Return the passkey of a credential with its account, in one indexed read; None if unknown."""
    row = database.lookup(_BY_CREDENTIAL_ID, credential_id)
    if row is None:
        return None
    passkey_id, name, public_key, sign_count, backup_eligible, handle, *account = row
    whose = Account(*account)
    return PasskeyWithAccount(
        passkey_id, name, public_key, sign_count, backup_eligible, handle, whose
    )


def one_time_use(
    passkey_id: int, credential_id: str, *, count: int, backed_up: bool, now: datetime
) -> OneTimeUse:
    """Return what opening a session with a passkey requires, and how that updates the passkey.

    Of concurrent logins with the same non-zero signature counter, exactly one opens a session.
    """
    which = {"passkey_id": passkey_id, "credential": credential_id}
    noted = {"new_count": count, "new_backed_up": backed_up, "now": now}
    return OneTimeUse(_OPEN, {**which, "sign_count": count}, [(_USE, {**which, **noted})])


def list_passkeys(database: Database, user_id: int) -> list[ListedPasskey]:
    """Return an account's passkeys: most recently used first, then those never used, newest first.

    At most the first MAX_LISTED.
    """
    rows = database.lookup_all(_LIST, user_id)
    if len(rows) > MAX_LISTED:
        rows = database.rows(_FIRST, user_id)
    found = [ListedPasskey(*row) for row in rows]
    found.sort(key=lambda passkey: (passkey.created_at, passkey.id), reverse=True)
    used = [passkey for passkey in found if passkey.last_used_at is not None]
    used.sort(key=lambda passkey: passkey.last_used_at or passkey.created_at, reverse=True)
    return used + [passkey for passkey in found if passkey.last_used_at is None]


def list_credentials(session: Session, user_id: int) -> Sequence[tuple[int, str]]:
    """Return id and credential id of an account's passkeys, oldest first.

    At most the MAX_LISTED newest.
    """
    statement = select(Passkey.id, Passkey.credential_id).where(Passkey.user_id == user_id)
    newest = session.execute(statement.order_by(Passkey.id.desc()).limit(MAX_LISTED))
    return [(row[0], row[1]) for row in reversed(newest.all())]


def get_passkey(session: Session, user_id: int, passkey_id: int | None) -> ListedPasskey:
    """Return a passkey of this account; an id of None matches nothing.

    Raises: PasskeyNotFound.
    """
    this = Passkey.user_id == user_id, Passkey.id == passkey_id
    row = session.execute(select(*_LISTED_COLUMNS).where(*this)).one_or_none()
    if row is None:
        raise PasskeyNotFound
    return ListedPasskey(*row)


def find_id(session: Session, credential_id: str) -> tuple[int, int] | None:
    """Return the id and owner's id of the passkey of a credential; None if it is unknown."""
    statement = select(Passkey.id, Passkey.user_id).where(Passkey.credential_id == credential_id)
    row = session.execute(statement).one_or_none()
    return None if row is None else (row[0], row[1])


def has_passkey(session: Session, user_id: int) -> bool:
    """Return whether the account has a passkey."""
    return bool(session.execute(select(exists().where(Passkey.user_id == user_id))).scalar())


def add(
    session: Session, *, transports: Collection[str] | None, now: datetime, **columns: Any
) -> int | None:
    """Insert a passkey and return its id; None if the credential is already registered.

    A single INSERT, so of concurrent registrations of one credential exactly one succeeds.
    """
    listed = None if transports is None else json.dumps(transports)
    moments = {"created_at": now, "updated_at": now}
    values = {"transports": listed, **moments, **columns}
    return session.execute(chosen(session, _ADD).values(**values)).scalar_one_or_none()


def rename(session: Session, passkey_id: int, name: str, now: datetime) -> None:
    """Rename a passkey."""
    statement = update(Passkey).where(Passkey.id == passkey_id).values(name=name, updated_at=now)
    bulk.change(session, statement)


def remove(session: Session, user_id: int, passkey_id: int) -> None:
    """Delete a passkey, and the account's user handle with its last passkey."""
    this = Passkey.id == passkey_id, Passkey.user_id == user_id
    bulk.change(session, delete(Passkey).where(*this))
    without = PasskeyHandle.user_id == user_id, ~exists().where(Passkey.user_id == user_id)
    bulk.change(session, delete(PasskeyHandle).where(*without))


def remove_all(session: Session, user_id: int) -> int:
    """Delete an account's passkeys and user handle; return the number of passkeys."""
    removed = bulk.change(session, delete(Passkey).where(Passkey.user_id == user_id))
    bulk.change(session, delete(PasskeyHandle).where(PasskeyHandle.user_id == user_id))
    return removed


def find_handle(session: Session, user_id: int) -> str | None:
    """Return an account's user handle; None before a registration or after the last removal."""
    statement = select(PasskeyHandle.handle).where(PasskeyHandle.user_id == user_id)
    return session.execute(statement).scalar_one_or_none()


def add_handle(session: Session, user_id: int, handle: str) -> None:
    """Store the user handle of an account that has none."""
    session.execute(insert(PasskeyHandle).values(user_id=user_id, handle=handle))
