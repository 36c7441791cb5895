"""Statements on invitations."""

from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from app.core.database import bulk
from app.core.database.database import Reader
from app.core.db import columns_of
from app.invitations.models import Invitation, InvitationStatus


class StoredInvitation(NamedTuple):
    """A stored invitation, in the order of its columns."""

    id: int
    email: str
    status: InvitationStatus
    invited_by: int | None
    accepted_user_id: int | None
    expires_at: datetime
    created_at: datetime
    updated_at: datetime
    accepted_at: datetime | None
    revoked_at: datetime | None

    def status_at(self, now: datetime) -> InvitationStatus:
        """Return the effective status: EXPIRED for a pending invitation past `expires_at`."""
        is_overdue = self.status is InvitationStatus.PENDING and self.expires_at <= now
        return InvitationStatus.EXPIRED if is_overdue else self.status


_STORED = select(*columns_of(StoredInvitation, Invitation))


def find_by_token(reader: Reader, digest: str) -> StoredInvitation | None:
    """Return the invitation whose token has this digest; None if there is none."""
    return _one(reader, Invitation.token_digest == digest)


def find(reader: Reader, invitation_id: int) -> StoredInvitation | None:
    """Return the invitation; None if there is none."""
    return _one(reader, Invitation.id == invitation_id)


def list_newest_first(reader: Reader) -> list[StoredInvitation]:
    """Return every invitation."""
    newest_first = Invitation.created_at.desc(), Invitation.id.desc()
    return [_stored(row) for row in reader.execute(_STORED.order_by(*newest_first))]


def add(
    session: Session, email: str, token_digest: str, created_at: datetime, expires_at: datetime
) -> int:
    """Insert a pending invitation created on the command line; return its id."""
    row = Invitation(
        email=email,
        token_digest=token_digest,
        status=InvitationStatus.PENDING,
        expires_at=expires_at,
        created_at=created_at,
        updated_at=created_at,
    )
    session.add(row)
    session.flush()
    return row.id


def accept(session: Session, invitation_id: int, now: datetime) -> bool:
    """Mark an open invitation accepted; return False if it is not open.

    A single UPDATE, like `revoke`: of concurrent calls to either, only one returns True.
    """
    its_row = Invitation.id == invitation_id
    accepted = InvitationStatus.ACCEPTED
    return _close(session, now, its_row, _is_in_time(now), status=accepted, accepted_at=now) == 1


def set_accepted_user(session: Session, invitation_id: int, user_id: int) -> None:
    """Record the account that was created by accepting an invitation."""
    its_row = update(Invitation).where(Invitation.id == invitation_id)
    bulk.change(session, its_row.values(accepted_user_id=user_id))


def revoke(session: Session, invitation_id: int, now: datetime) -> bool:
    """Revoke an open invitation; return False if it is not open."""
    its_row = Invitation.id == invitation_id
    revoked = InvitationStatus.REVOKED
    return _close(session, now, its_row, _is_in_time(now), status=revoked, revoked_at=now) == 1


def expire(session: Session, invitation_id: int, now: datetime) -> None:
    """Mark a pending invitation expired if it is overdue."""
    _expire(session, now, Invitation.id == invitation_id)


def close_pending(session: Session, email: str, now: datetime) -> None:
    """Close an address's pending invitation: expire it if overdue, else revoke it."""
    its_rows = Invitation.email == email
    _expire(session, now, its_rows)
    _close(session, now, its_rows, status=InvitationStatus.REVOKED, revoked_at=now)


def _expire(session: Session, now: datetime, which: Any) -> None:
    is_overdue = Invitation.expires_at <= now
    _close(session, now, which, is_overdue, status=InvitationStatus.EXPIRED)


def _close(session: Session, now: datetime, *conditions: Any, **values: Any) -> int:
    """Give pending invitations their final status; return how many were changed."""
    pending = Invitation.status == InvitationStatus.PENDING
    statement = update(Invitation).where(pending, *conditions).values(updated_at=now, **values)
    return bulk.change(session, statement)


def _is_in_time(now: datetime) -> Any:
    return Invitation.expires_at > now


def _one(reader: Reader, condition: Any) -> StoredInvitation | None:
    row = reader.execute(_STORED.where(condition)).one_or_none()
    return _stored(row) if row else None


def _stored(row: Any) -> StoredInvitation:
    found = StoredInvitation(*row)
    return found._replace(status=InvitationStatus(found.status))
