"""Statements on passkeys."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import delete, exists, or_, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.passkeys.errors import CredentialTaken, PasskeyNotFound
from app.passkeys.models import Passkey, PasskeyHandle
from app.store import bulk
from app.users.models import ACCOUNT_COLUMNS, Account, User, with_profile

# A runaway client may register thousands; listing them all would block a worker, and every request
# it serves, for seconds.
MAX_LISTED = 500


def find_with_account(session: Session, credential_id: str) -> tuple[Passkey, str, Account] | None:
    """Return the passkey of a credential, its account's user handle and that account, if known."""
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
    return passkey, handle, Account(*account)


def use(session: Session, passkey: Passkey, count: int, is_backed_up: bool, now: datetime) -> bool:
    """Note the use of a passkey; False if it is gone, or its signature counter does not grow.

    Of concurrent logins with the same non-zero counter, exactly one succeeds.
    """
    statement = update(Passkey).where(
        Passkey.id == passkey.id,
        # Counters are never negative, so the sum is 0 only if both are: the authenticator has none.
        or_(Passkey.sign_count < count, Passkey.sign_count + count == 0),
    )
    values = {
        "sign_count": count,
        "backed_up": is_backed_up,
        "last_used_at": now,
        "updated_at": now,
    }
    return bulk.change(session, statement.values(values)) == 1


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


def list_all_credential_ids(session: Session, user_id: int) -> Sequence[str]:
    """Return the credential id of every passkey: browsers hide those that are not named."""
    return session.scalars(select(Passkey.credential_id).where(Passkey.user_id == user_id)).all()


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
