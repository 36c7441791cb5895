"""Statements on passkeys."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import (
    BigInteger,
    Boolean,
    bindparam,
    delete,
    exists,
    literal_column,
    or_,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.core.database import bulk
from app.core.database.prepared import Prepared
from app.core.db import UTCDateTime
from app.passkeys.errors import CredentialTaken, PasskeyNotFound
from app.passkeys.models import Passkey, PasskeyHandle
from app.sessions import opening
from app.sessions.opening import OneTimeUse
from app.users.models import ACCOUNT_COLUMNS, Account, User, with_profile

# A runaway client may register thousands; listing them all would block a worker, and every request
# it serves, for seconds.
MAX_LISTED = 500
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


class PasskeyWithAccount(NamedTuple):
    """A stored passkey with its account, as a sign-in needs it."""

    passkey: Passkey
    handle: str
    account: Account


def find_by_credential_id(session: Session, credential_id: str) -> PasskeyWithAccount | None:
    """Return the passkey of a credential with its account; None if unknown."""
    statement = (
        select(Passkey, PasskeyHandle.handle, *ACCOUNT_COLUMNS)
        .join(User, User.id == Passkey.user_id)
        .join(PasskeyHandle, PasskeyHandle.user_id == Passkey.user_id)
        .where(Passkey.credential_id == credential_id)
    )
    row = session.execute(with_profile(statement)).one_or_none()
    if row is None:
        return None
    passkey, handle, *account = row
    return PasskeyWithAccount(passkey, handle, Account(*account))


def one_time_use(
    passkey_id: int, credential_id: str, *, count: int, backed_up: bool, now: datetime
) -> OneTimeUse:
    """Return what opening a session with a passkey requires, and how that updates the passkey.

    Of concurrent logins with the same non-zero signature counter, exactly one opens a session.
    """
    which = {"passkey_id": passkey_id, "credential": credential_id}
    noted = {"new_count": count, "new_backed_up": backed_up, "now": now}
    return OneTimeUse(_OPEN, {**which, "sign_count": count}, [(_USE, {**which, **noted})])


def list_passkeys(session: Session, user_id: int) -> Sequence[Passkey]:
    """Return an account's passkeys: most recently used first, then those never used, newest first.

    At most the first MAX_LISTED.
    """
    newest = Passkey.last_used_at.desc().nulls_last(), Passkey.created_at.desc(), Passkey.id.desc()
    statement = select(Passkey).where(Passkey.user_id == user_id).order_by(*newest)
    return session.scalars(statement.limit(MAX_LISTED)).all()


def list_credentials(session: Session, user_id: int) -> Sequence[tuple[int, str]]:
    """Return id and credential id of an account's passkeys, oldest first.

    At most the MAX_LISTED newest.
    """
    statement = select(Passkey.id, Passkey.credential_id).where(Passkey.user_id == user_id)
    newest = session.execute(statement.order_by(Passkey.id.desc()).limit(MAX_LISTED))
    return [(row[0], row[1]) for row in reversed(newest.all())]


def get_passkey(session: Session, user_id: int, passkey_id: int | None) -> Passkey:
    """Return a passkey of this account; an id of None matches nothing.

    Raises: PasskeyNotFound.
    """
    statement = select(Passkey).where(Passkey.user_id == user_id, Passkey.id == passkey_id)
    passkey = session.scalars(statement).one_or_none()
    if passkey is None:
        raise PasskeyNotFound
    return passkey


def find_id(session: Session, credential_id: str) -> tuple[int, int] | None:
    """Return the id and owner's id of the passkey of a credential; None if it is unknown."""
    statement = select(Passkey.id, Passkey.user_id).where(Passkey.credential_id == credential_id)
    row = session.execute(statement).one_or_none()
    return None if row is None else (row[0], row[1])


def has_passkey(session: Session, user_id: int) -> bool:
    """Return whether the account has a passkey."""
    return bool(session.scalar(select(exists().where(Passkey.user_id == user_id))))


def add(session: Session, passkey: Passkey) -> None:
    """Insert a passkey.

    Raises: CredentialTaken; of concurrent registrations of one credential exactly one succeeds.
    """
    session.add(passkey)
    try:
        session.flush()
    except IntegrityError:
        raise CredentialTaken from None


def remove(session: Session, passkey: Passkey) -> None:
    """Delete a passkey, and the account's user handle with its last passkey."""
    session.delete(passkey)
    session.flush()
    user_id = passkey.user_id
    without = PasskeyHandle.user_id == user_id, ~exists().where(Passkey.user_id == user_id)
    bulk.change(session, delete(PasskeyHandle).where(*without))


def remove_all(session: Session, user_id: int) -> int:
    """Delete an account's passkeys and user handle; return the number of passkeys."""
    removed = bulk.change(session, delete(Passkey).where(Passkey.user_id == user_id))
    bulk.change(session, delete(PasskeyHandle).where(PasskeyHandle.user_id == user_id))
    return removed


def find_handle(session: Session, user_id: int) -> str | None:
    """Return an account's user handle; None before a registration or after the last removal."""
    return session.scalar(select(PasskeyHandle.handle).where(PasskeyHandle.user_id == user_id))


def add_handle(session: Session, user_id: int, handle: str) -> None:
    """Store the user handle of an account that has none."""
    session.add(PasskeyHandle(user_id=user_id, handle=handle))
