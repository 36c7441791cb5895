"""Statements on providers.

`look_up...` run prepared statements and need no connection of the caller's; the others run on the
caller's session or read connection.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, delete, exists, insert, select, update
from sqlalchemy.orm import Session

from app.core.database import bulk
from app.core.database.database import Database, Reader
from app.core.database.prepared import Prepared
from app.external_auth.drivers.interface import ProviderKind
from app.external_auth.models import PROVIDER_COLUMNS, ExternalAuthProvider, Provider

_PROVIDER = select(*PROVIDER_COLUMNS)
_BY_KEY = Prepared(
    _PROVIDER.where(
        ExternalAuthProvider.provider_kind == bindparam("kind"),
        ExternalAuthProvider.key == bindparam("key"),
    ),
    ("kind", "key"),
)
_BY_ID = Prepared(
    _PROVIDER.where(ExternalAuthProvider.id == bindparam("provider_id")), ("provider_id",)
)


def look_up_key(database: Database, kind: ProviderKind, key: str) -> Provider | None:
    """Return the provider of this kind and key, or None."""
    row = database.row(_BY_KEY, kind.value, key)
    return _provider(row) if row else None


def look_up(database: Database, provider_id: int) -> Provider | None:
    """Return the provider with this id, or None; see `find` for use in a transaction."""
    row = database.row(_BY_ID, provider_id)
    return _provider(row) if row else None


def find(reader: Reader, provider_id: int) -> Provider | None:
    """Return the provider with this id, or None."""
    row = reader.execute(_PROVIDER.where(ExternalAuthProvider.id == provider_id)).one_or_none()
    return _provider(row) if row else None


def lock(session: Session, provider_id: int) -> Provider | None:
    """Return the provider, locked against deletion until the transaction ends, or None."""
    statement = _PROVIDER.where(ExternalAuthProvider.id == provider_id)
    # FOR KEY SHARE: concurrent sign-ins with one provider do not block each other.
    row = session.execute(statement.with_for_update(read=True, key_share=True)).one_or_none()
    return _provider(row) if row else None


def list_named(reader: Reader, key: str, kind: ProviderKind | None = None) -> list[Provider]:
    """Return the providers with this key, of one kind or of any kind."""
    statement = _PROVIDER.where(ExternalAuthProvider.key == key)
    if kind is not None:
        statement = statement.where(ExternalAuthProvider.provider_kind == kind)
    return [_provider(row) for row in reader.execute(statement)]


def list_all(reader: Reader) -> list[Provider]:
    """Return every provider by display name, then id."""
    return _in_order(reader.execute(_PROVIDER))


def list_enabled(reader: Reader) -> list[Provider]:
    """Return the enabled providers by display name, then id."""
    return _in_order(reader.execute(_PROVIDER.where(ExternalAuthProvider.enabled)))


def is_any_enabled(session: Session) -> bool:
    """Return whether any provider is enabled."""
    enabled = select(ExternalAuthProvider.id).where(ExternalAuthProvider.enabled)
    return bool(session.execute(select(exists(enabled))).scalar())


def add(session: Session, **columns: Any) -> int:
    """Insert a provider and return its id."""
    statement = insert(ExternalAuthProvider).values(**columns).returning(ExternalAuthProvider.id)
    return session.execute(statement).scalar_one()


def set_columns(session: Session, provider_id: int, now: datetime, **values: Any) -> None:
    """Change columns of a provider."""
    its_row = ExternalAuthProvider.id == provider_id
    statement = update(ExternalAuthProvider).where(its_row).values(updated_at=now, **values)
    bulk.change(session, statement)


def remove(session: Session, provider_id: int) -> None:
    """Delete a provider with its links and pending identities; accounts stay."""
    statement = delete(ExternalAuthProvider).where(ExternalAuthProvider.id == provider_id)
    bulk.change(session, statement)


def replace_secret(session: Session, provider_id: int, old: str, new: str) -> bool:
    """Replace a secret's ciphertext with a new one; False if the secret was changed meanwhile."""
    same = ExternalAuthProvider.id == provider_id, ExternalAuthProvider.client_secret == old
    statement = update(ExternalAuthProvider).where(*same).values(client_secret=new)
    return bulk.change(session, statement) == 1


def _in_order(rows: Any) -> list[Provider]:
    # Sorted here, since collations differ between databases.
    return sorted(map(_provider, rows), key=lambda provider: (provider.display_name, provider.id))


def _provider(row: Any) -> Provider:
    provider = Provider(*row)
    return provider._replace(provider_kind=ProviderKind(provider.provider_kind))
