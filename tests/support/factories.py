"""Factories for test data; every property can be overridden by keyword."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from flask import Flask

from app.audit.models import AuditEntry
from app.contact_verification.models import ContactToken, LinkPurpose
from app.contact_verification.tokens import PREFIX
from app.core.access import COMMAND_LINE
from app.core.client import Client
from app.core.runtime import Runtime
from app.crypto.tokens import digest, random_token
from app.passkeys.models import Passkey
from app.sessions import service as sessions
from app.settings import changes as settings
from app.storage_policies import queries as storage_queries
from app.storage_policies.models import StoragePolicy, StoragePolicyGroup, StoragePolicyGroupItem
from app.users import service as users
from app.users.models import Account, Role, Status, User
from tests.support.api import ApiClient
from tests.support.leaks import watch

PASSWORD = "a good long password"
_numbers = itertools.count(1)


@dataclass(frozen=True)
class KnownUser:
    """An account whose password the test knows."""

    id: int
    username: str
    email: str
    password: str


def make_user(
    rt: Runtime,
    *,
    username: str | None = None,
    email: str | None = None,
    password: str | None = PASSWORD,
    role: str = Role.USER,
    status: str = Status.ACTIVE,
    activated: bool = True,
    verified: bool = True,
    **columns: Any,
) -> KnownUser:
    """Insert an account; `columns` sets further columns (must_change_password, preferences ...).

    A password of None creates an account without a usable password.
    """
    number = next(_numbers)
    watch.note(password)
    username = username or f"user{number}"
    email = email or f"{username.lower()}@example.com"
    now = rt.clock.now()
    with rt.transaction() as session:
        new = User(
            username=username,
            email=email,
            password_hash=None if password is None else rt.passwords.hash(password),
            role=Role(role),
            activated_at=now if activated else None,
            email_verified_at=now if verified else None,
            proven_at=now if verified else None,
            policy_group_id=storage_queries.find_default_group_id(session),
        )
        account = users.create(session, new, now)
        if status != account.status:
            columns["status"] = status
        if columns:
            session.execute(sa.update(User).where(User.id == account.id).values(**columns))
    return KnownUser(account.id, account.username, account.email, password or "")


def add_many(rt: Runtime, number: int) -> None:
    """Add accounts that nobody signs in with, `many0` and so on."""
    now = rt.clock.now()
    rows = [
        {
            "username": f"many{index}",
            "username_key": f"many{index}",
            "email": f"many{index}@example.com",
            "email_verified": True,
            "created_at": now,
            "updated_at": now,
        }
        for index in range(number)
    ]
    with rt.transaction() as session:
        session.execute(sa.insert(User), rows)


def bearer_of(rt: Runtime, app: Flask, user: KnownUser) -> ApiClient:
    """Return a client with an open session, without the cost of a login."""
    with rt.transaction() as session:
        pair = sessions.open_session(rt, session, user.id, Client(), is_limited=False)
    return ApiClient(app, {"Authorization": f"Bearer {pair.access_token}"})


def account_of(rt: Runtime, user: KnownUser) -> Account:
    """Return the account as use cases get it."""
    with rt.reading() as session:
        return users.get(session, user.id)


def change_user(rt: Runtime, user: KnownUser, **columns: Any) -> None:
    """Change columns of an account directly in the database."""
    with rt.transaction() as session:
        session.execute(sa.update(User).where(User.id == user.id).values(**columns))


def delete_user(rt: Runtime, user: KnownUser) -> None:
    with rt.transaction() as session:
        session.execute(sa.delete(User).where(User.id == user.id))


def delete_all_users(rt: Runtime) -> None:
    with rt.transaction() as session:
        session.execute(sa.delete(User))


def column_of(rt: Runtime, user: KnownUser, name: str) -> Any:
    """Return one stored column of an account."""
    with rt.reading() as connection:
        return connection.execute(sa.select(getattr(User, name)).where(User.id == user.id)).scalar()


def issue_token(
    rt: Runtime,
    user: KnownUser,
    purpose: LinkPurpose,
    address: str | None = None,
    life: timedelta = timedelta(days=1),
) -> str:
    """Give an account a token, replacing its last one for this purpose; return it as mailed."""
    token, now = PREFIX + random_token(), rt.clock.now()
    with rt.transaction() as session:
        its_row = ContactToken.user_id == user.id, ContactToken.purpose == purpose
        session.execute(sa.delete(ContactToken).where(*its_row))
        row = ContactToken(
            user_id=user.id,
            purpose=purpose,
            token_digest=digest(token),
            address=address or user.email,
            created_at=now,
            expires_at=now + life,
        )
        session.add(row)
    return token


def configure(rt: Runtime, **values: Any) -> None:
    """Change runtime settings as the command line would."""
    watch.note_members(values)
    settings.change(rt, COMMAND_LINE, values)


def remove_storage_route(rt: Runtime) -> None:
    """Remove every storage policy and group."""
    with rt.transaction() as session:
        for model in (StoragePolicyGroupItem, StoragePolicyGroup, StoragePolicy):
            session.execute(sa.delete(model))


@contextmanager
def at_revision(rt: Runtime, revision: str) -> Iterator[None]:
    """Make the database report another schema revision within the block."""
    change = sa.text("UPDATE alembic_version SET version_num = :revision")
    with rt.transaction() as session:
        current = session.execute(sa.text("SELECT version_num FROM alembic_version")).scalar_one()
        session.execute(change, {"revision": revision})
    try:
        yield
    finally:
        with rt.transaction() as session:
            session.execute(change, {"revision": current})


def audit_rows(rt: Runtime, action: str | None = None) -> list[Any]:
    """Return the audit entries, oldest first; only those of `action` if given."""
    statement = sa.select(*AuditEntry.__table__.columns).order_by(AuditEntry.id)
    if action is not None:
        statement = statement.where(AuditEntry.action == action)
    with rt.reading() as connection:
        return list(connection.execute(statement).all())


def count(rt: Runtime, model: Any, *conditions: Any) -> int:
    """Return how many rows of a table meet the conditions."""
    statement = sa.select(sa.func.count()).select_from(model).where(*conditions)
    with rt.reading() as connection:
        return int(connection.execute(statement).scalar_one())


def add_passkeys(rt: Runtime, user: KnownUser, number: int) -> list[int]:
    """Add `number` passkeys that no authenticator holds; return their ids, oldest first."""
    columns: dict[str, Any] = {
        "user_id": user.id,
        "public_key": b"",
        "name": "Passkey",
        "transports": None,
        "sign_count": 0,
        "backup_eligible": False,
        "backed_up": False,
        "created_at": rt.clock.now(),
        "updated_at": rt.clock.now(),
    }
    with rt.transaction() as session:
        made = [Passkey(credential_id=random_token(), **columns) for _ in range(number)]
        session.add_all(made)
        session.flush()
        return [passkey.id for passkey in made]


def fresh_account(answered: Any, **own: Any) -> dict[str, Any]:
    """Return the expected answer for an account just created; `own` overrides or adds members."""
    now = answered["created_at"]
    return {
        "id": answered["id"],
        "pending_email": None,
        "status": "active",
        "must_change_password": False,
        "policy_group_id": answered["policy_group_id"],
        "created_at": now,
        "updated_at": now,
        "storage_used": 0,
        "storage_quota": 0,
        "profile": {
            "display_name": None,
            "avatar": {"source": "none", "url_512": None, "url_1024": None, "version": 0},
        },
        **own,
    }


def moment(text: str) -> datetime:
    """Parse a timestamp from the wire; assert UTC with a trailing Z."""
    assert text.endswith("Z"), text
    return datetime.fromisoformat(text)
