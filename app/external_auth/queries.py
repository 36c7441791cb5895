"""Statements on links and on pending identities."""

from datetime import datetime
from typing import Any

from sqlalchemy import delete, exists, func, insert, select, update
from sqlalchemy.orm import Session

from app.core.database import bulk
from app.core.database.database import Database, Reader
from app.core.database.lookups import Lookup
from app.core.db import columns_of
from app.external_auth.models import (
    ExternalAuthIdentity,
    ExternalAuthPending,
    ExternalAuthProvider,
    Identity,
    Link,
    PendingIdentity,
)

_LINKS = Lookup(
    select(
        ExternalAuthIdentity.id,
        ExternalAuthIdentity.provider_id,
        ExternalAuthProvider.key,
        ExternalAuthProvider.provider_kind,
        ExternalAuthProvider.display_name,
        ExternalAuthProvider.icon_url,
        ExternalAuthIdentity.identity_namespace,
        ExternalAuthIdentity.subject,
        ExternalAuthIdentity.email_snapshot,
        ExternalAuthIdentity.display_name_snapshot,
        ExternalAuthIdentity.created_at,
        ExternalAuthIdentity.updated_at,
        ExternalAuthIdentity.last_login_at,
    ).join(ExternalAuthProvider, ExternalAuthProvider.id == ExternalAuthIdentity.provider_id),
    ExternalAuthIdentity.user_id,
)
_PENDING = select(*columns_of(PendingIdentity, ExternalAuthPending))


def find_identity(session: Session, namespace: str, subject: str) -> Identity | None:
    """Return the link of an identity, or None."""
    statement = select(ExternalAuthIdentity.id, ExternalAuthIdentity.user_id).where(
        ExternalAuthIdentity.identity_namespace == namespace,
        ExternalAuthIdentity.subject == subject,
    )
    row = session.execute(statement).one_or_none()
    return Identity(*row) if row else None


def is_linkable(session: Session, user_id: int, provider_id: int, subject: str) -> bool:
    """Return whether neither the account nor the subject has a link at this provider yet."""
    theirs = (ExternalAuthIdentity.user_id == user_id) | (ExternalAuthIdentity.subject == subject)
    found = select(ExternalAuthIdentity.id).where(
        ExternalAuthIdentity.provider_id == provider_id, theirs
    )
    return not session.execute(select(exists(found))).scalar()


def add_identity(session: Session, **columns: Any) -> None:
    """Insert a link."""
    session.execute(insert(ExternalAuthIdentity).values(**columns))


def touch_identity(session: Session, identity: Identity, now: datetime, **snapshots: Any) -> bool:
    """Record a sign-in and new snapshots; return False if the link was removed meanwhile."""
    same = ExternalAuthIdentity.id == identity.id, ExternalAuthIdentity.user_id == identity.user_id
    statement = update(ExternalAuthIdentity).where(*same)
    noted = statement.values(last_login_at=now, updated_at=now, **snapshots)
    return bulk.change(session, noted) == 1


def list_links(database: Database, user_id: int) -> list[Link]:
    """Return the links of an account, unordered."""
    return [Link(*row) for row in database.lookup_all(_LINKS, user_id)]


def find_link(session: Session, user_id: int, link_id: int) -> Link | None:
    """Return a link of this account by its id, or None."""
    mine = ExternalAuthIdentity.user_id == user_id, ExternalAuthIdentity.id == link_id
    row = session.execute(_LINKS.statement.where(*mine)).one_or_none()
    return Link(*row) if row else None


def count_links(reader: Reader, provider_id: int) -> dict[str, int]:
    """Return the number of a provider's links in each namespace."""
    namespace = ExternalAuthIdentity.identity_namespace
    statement = (
        select(namespace, func.count())
        .where(ExternalAuthIdentity.provider_id == provider_id)
        .group_by(namespace)
    )
    return {row[0]: row[1] for row in reader.execute(statement)}


def remove_link(session: Session, user_id: int, link_id: int) -> None:
    """Delete a link of this account."""
    mine = ExternalAuthIdentity.user_id == user_id, ExternalAuthIdentity.id == link_id
    bulk.change(session, delete(ExternalAuthIdentity).where(*mine))


def remove_links(session: Session, user_id: int) -> int:
    """Delete all links of an account; return how many."""
    mine = ExternalAuthIdentity.user_id == user_id
    return bulk.change(session, delete(ExternalAuthIdentity).where(mine))


def list_enabled_namespaces(session: Session, user_id: int) -> list[str]:
    """Return the namespaces of an account's links at enabled providers (decision E26)."""
    mine = ExternalAuthIdentity.user_id == user_id, ExternalAuthProvider.enabled
    statement = (
        select(ExternalAuthIdentity.identity_namespace)
        .join(ExternalAuthProvider, ExternalAuthProvider.id == ExternalAuthIdentity.provider_id)
        .where(*mine)
    )
    return list(session.scalars(statement))


def add_pending(session: Session, **columns: Any) -> None:
    """Insert a pending identity."""
    session.execute(insert(ExternalAuthPending).values(**columns))


def find_pending(reader: Reader, flow_token_digest: str) -> PendingIdentity | None:
    """Return the pending identity with this flow token, even if consumed or expired, or None."""
    return _pending(reader, ExternalAuthPending.flow_token_digest == flow_token_digest)


def find_by_mail_token(reader: Reader, verification_token_digest: str) -> PendingIdentity | None:
    """Return the pending identity with this mailed token, even if consumed or expired, or None."""
    return _pending(
        reader, ExternalAuthPending.verification_token_digest == verification_token_digest
    )


def record_mail_request(
    session: Session,
    pending: PendingIdentity,
    token_digest: str,
    address: str,
    now: datetime,
    *,
    owner_session_version: int,
) -> bool:
    """Record the only mail of a pending identity; of concurrent calls exactly one gets True."""
    open_one = _open(pending, now), ExternalAuthPending.email_requested_at.is_(None)
    statement = update(ExternalAuthPending).where(*open_one)
    noted = statement.values(
        target_email=address,
        verification_token_digest=token_digest,
        email_requested_at=now,
        owner_session_version=owner_session_version,
    )
    return bulk.change(session, noted) == 1


def consume(session: Session, pending: PendingIdentity, now: datetime) -> bool:
    """Consume a pending identity; of concurrent calls exactly one gets True."""
    statement = update(ExternalAuthPending).where(_open(pending, now)).values(consumed_at=now)
    return bulk.change(session, statement) == 1


def reopen(session: Session, pending: PendingIdentity, consumed_at: datetime) -> None:
    """Undo the `consume` made at `consumed_at`, after the step that it was for has failed."""
    mine = ExternalAuthPending.id == pending.id, ExternalAuthPending.consumed_at == consumed_at
    bulk.change(session, update(ExternalAuthPending).where(*mine).values(consumed_at=None))


def delete_expired(session: Session, before: datetime, most: int) -> int:
    """Delete up to `most` pending identities that expired before `before`; return how many."""
    expired = (
        select(ExternalAuthPending.id).where(ExternalAuthPending.expires_at < before).limit(most)
    )
    return bulk.change(
        session, delete(ExternalAuthPending).where(ExternalAuthPending.id.in_(expired))
    )


def _pending(reader: Reader, condition: Any) -> PendingIdentity | None:
    row = reader.execute(_PENDING.where(condition)).one_or_none()
    return PendingIdentity(*row) if row else None


def _open(pending: PendingIdentity, now: datetime) -> Any:
    return (
        (ExternalAuthPending.id == pending.id)
        & ExternalAuthPending.consumed_at.is_(None)
        & (ExternalAuthPending.expires_at > now)
    )
