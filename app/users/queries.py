"""Statements on accounts.

Functions that take a `Database` read by themselves; the others are part of the caller's transaction
or read.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import (
    Row,
    Update,
    bindparam,
    delete,
    exists,
    func,
    or_,
    select,
    update,
)
from sqlalchemy.orm import Session

from app.crypto.foreign_hashes import Way, head_of
from app.store import bulk
from app.store.database import Database
from app.store.db import insert_into
from app.store.search import folded_column
from app.users.models import (
    ACCOUNT_COLUMNS,
    Account,
    AvatarSource,
    PasswordHashKind,
    PasswordSecret,
    Role,
    Status,
    User,
    UserProfile,
    with_profile,
)

# Statements that many requests run are built once, with bound parameters.
_ACCOUNT = with_profile(select(*ACCOUNT_COLUMNS))
_ACCOUNT_BY_ID = _ACCOUNT.where(User.id == bindparam("user_id"))
_CREDENTIALS = {
    column.key: with_profile(select(*ACCOUNT_COLUMNS, User.password_hash)).where(
        column == bindparam("who")
    )
    for column in (User.email, User.username_key)
}
_HASH_KINDS = select(PasswordHashKind.sample)
# FOR NO KEY UPDATE rather than FOR SHARE: two logins that both re-hash would deadlock.
_STATE_FOR_UPDATE = (
    select(User.status, User.session_version)
    .where(User.id == bindparam("user_id"))
    .with_for_update(key_share=True)
)
_IS_ACTIVE_ADMIN = (
    User.role == Role.ADMIN,
    User.status == Status.ACTIVE,
    User.activated_at.is_not(None),
)


def find_account(session: Session, user_id: int) -> Account | None:
    """Return the account; None if there is none."""
    row = session.execute(_ACCOUNT_BY_ID, {"user_id": user_id}).one_or_none()
    return Account(*row) if row else None


def find_by_identifier(session: Session, who: str) -> Account | None:
    """Return the account with this username or address; None if there is none."""
    row = session.execute(_ACCOUNT.where(_column(who) == who)).one_or_none()
    return Account(*row) if row else None


def list_matching(session: Session, most: int | None, *conditions: Any) -> list[Account]:
    """Return the first `most` accounts that meet all conditions, by id; None means all of them."""
    rows = session.execute(_ACCOUNT.where(*conditions).order_by(User.id).limit(most))
    return [Account(*row) for row in rows]


def list_named(session: Session, user_ids: Collection[int]) -> dict[int, Account]:
    """Return the existing ones of these accounts, keyed by id."""
    rows = session.execute(_ACCOUNT.where(User.id.in_(user_ids)))
    return {row[0]: Account(*row) for row in rows}


def find_credentials(
    database: Database, who: str
) -> tuple[Account | None, str | None, Sequence[str]]:
    """Return the account with this username or address, and its password hash; None if none.

    With them come samples of the kinds of hashes that accounts have.
    """
    with database.connect() as connection:
        row = connection.execute(_CREDENTIALS[_column(who).key], {"who": who}).one_or_none()
        samples = connection.scalars(_HASH_KINDS).all()
    return (Account(*row[:-1]), row[-1], samples) if row else (None, None, samples)


def add_hash_kinds(session: Session, samples: Collection[str]) -> None:
    """Remember kinds of password hashes that accounts have or are about to have."""
    known = insert_into(session, PasswordHashKind).on_conflict_do_nothing()
    session.execute(known, [{"sample": sample} for sample in sorted(samples)])


def forget_unused_hash_kinds(session: Session, own: str) -> None:
    """Forget the kinds of password hashes that no account has any more; `own` stays."""
    unused = [
        sample
        for sample in session.scalars(_HASH_KINDS).all()
        if sample != own
        and not _any(session, User.password_hash.startswith(head_of(sample), autoescape=True))
    ]
    forget = delete(PasswordHashKind).where(PasswordHashKind.sample.in_(unused))
    bulk.change(session, forget)


def list_password_secrets(session: Session) -> Sequence[PasswordSecret]:
    """Return the secrets that imported passwords need, or needed."""
    return session.scalars(select(PasswordSecret).order_by(PasswordSecret.id)).all()


def count_with_secret(session: Session) -> int:
    """Return how many accounts have a password that needs such a secret."""
    needs = or_(*(User.password_hash.startswith(f"{way}:") for way in Way))
    return session.scalars(select(func.count()).where(needs)).one()


def delete_unused_password_secrets(session: Session, before: datetime) -> int:
    """Delete those from before then that no password needs any more; return how many."""
    old = select(PasswordSecret.id).where(PasswordSecret.created_at < before)
    unused = [
        secret_id
        for secret_id in session.scalars(old)
        if not _any(
            session, or_(*(User.password_hash.startswith(f"{way}:{secret_id}:") for way in Way))
        )
    ]
    return bulk.change(session, delete(PasswordSecret).where(PasswordSecret.id.in_(unused)))


def find_password_hash(session: Session, user_id: int) -> str | None:
    """Return the password hash; None if there is no account or no usable password."""
    return session.scalar(select(User.password_hash).where(User.id == user_id))


def is_username_taken(session: Session, username_key: str) -> bool:
    """Return whether an account has this username, in any case."""
    return _any(session, User.username_key == username_key)


def is_email_taken(session: Session, address: str, *, except_for: int | None = None) -> bool:
    """Return whether an account other than `except_for` has or is changing to this address."""
    return _any(
        session,
        or_(User.email == address, User.pending_email == address),
        *([User.id != except_for] if except_for is not None else []),
    )


def lock_unchanged(session: Session, account: Account) -> bool:
    """Lock an account until the transaction ends; False if its sessions may have been ended."""
    row = session.execute(_STATE_FOR_UPDATE, {"user_id": account.id}).one_or_none()
    return row is not None and tuple(row) == (account.status, account.session_version)


def list_taken(
    session: Session, name_keys: Collection[str], addresses: Collection[str]
) -> Sequence[Row[str, str, str | None]]:
    """Return username key, address and pending address of the accounts that use any of these."""
    uses = or_(
        User.username_key.in_(name_keys),
        User.email.in_(addresses),
        User.pending_email.in_(addresses),
    )
    columns = select(User.username_key, User.email, User.pending_email)
    return session.execute(columns.where(uses)).all()


def replace_hash(session: Session, user_id: int, old_hash: str, new_hash: str) -> None:
    """Store a re-hash of the same password, unless the password was changed meanwhile."""
    bulk.change(session, _with_hash(user_id, old_hash).values(password_hash=new_hash))


def change_password(
    session: Session, user_id: int, new_hash: str, now: datetime, *, old_hash: str
) -> bool:
    """Replace the hash and lift a forced change; False if a concurrent change came first."""
    values = {"password_hash": new_hash, "must_change_password": False, "updated_at": now}
    return bulk.change(session, _with_hash(user_id, old_hash).values(values)) == 1


def lock(session: Session, user_id: int, *, key_share: bool = False) -> None:
    """Lock the account's row until the transaction ends.

    With `key_share`, other transactions may still insert rows that refer to it.
    """
    statement = select(User.id).where(User.id == user_id).with_for_update(key_share=key_share)
    # Fetch all: an open cursor would keep SQLite's snapshot beyond the commit.
    session.execute(statement).all()


def lock_and_find(session: Session, user_id: int) -> Account | None:
    """Lock an account until the transaction ends and return it; None if there is none."""
    lock(session, user_id)
    return find_account(session, user_id)


def set_columns(session: Session, user_id: int, now: datetime, **values: Any) -> None:
    """Update columns of an account."""
    its_row = update(User).where(User.id == user_id)
    bulk.change(session, its_row.values(updated_at=now, **values))


def prove_address(session: Session, account: Account, now: datetime) -> None:
    """Remember that the owner of an account's address has acted in person, unless it changed."""
    if account.proven_at is None:
        same = User.id == account.id, User.email == account.email, User.proven_at.is_(None)
        bulk.change(session, update(User).where(*same).values(proven_at=now, updated_at=now))


def set_display_name(session: Session, user_id: int, name: str | None, now: datetime) -> None:
    """Store the name; None clears it. The avatar and its version are left unchanged."""
    folded = folded_column(name)
    values = {"display_name": name, "display_name_folded": folded, "updated_at": now}
    statement = insert_into(session, UserProfile).values(
        user_id=user_id,
        avatar_source=AvatarSource.NONE,
        avatar_version=0,
        created_at=now,
        **values,
    )
    session.execute(
        statement.on_conflict_do_update(index_elements=[UserProfile.user_id], set_=values)
    )


def drop_pending_email(session: Session, user_id: int) -> None:
    """Cancel a pending change of address.

    Its confirmation link needs no session, so an intruder who has been shut out could still use it.
    """
    its_row = update(User).where(User.id == user_id, User.pending_email.is_not(None))
    bulk.change(session, its_row.values(pending_email=None))


def remove(session: Session, user_id: int) -> None:
    """Delete an account with everything that belongs to it."""
    bulk.change(session, delete(User).where(User.id == user_id))


def list_active_admins(session: Session) -> list[Account]:
    """Return every administrator who can sign in."""
    rows = session.execute(_ACCOUNT.where(*_IS_ACTIVE_ADMIN).order_by(User.id))
    return [Account(*row) for row in rows]


def is_other_admin_active(session: Session, user_id: int) -> bool:
    """Return whether an administrator other than this account can sign in."""
    return _any(session, *_IS_ACTIVE_ADMIN, User.id != user_id)


def _with_hash(user_id: int, password_hash: str) -> Update:
    return update(User).where(User.id == user_id, User.password_hash == password_hash)


def _column(who: str) -> Any:
    # Every address has an @, and no username.
    return User.email if "@" in who else User.username_key


def _any(session: Session, *conditions: Any) -> bool:
    return bool(session.execute(select(exists(select(User.id).where(*conditions)))).scalar())
