"""Statements that remove the traces of an account."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import and_, delete, or_, select, tuple_, update
from sqlalchemy.orm import Session

from app.audit.models import AuditEntry, EntityType
from app.audit.queries import is_by_or_about
from app.external_auth.models import Identity, PendingIdentity
from app.invitations.models import Invitation
from app.mail.models import OutboxMail
from app.mail.queries import FINISHED, UNFINISHED
from app.own_data.models import Erasure
from app.store import bulk
from app.teams.models import Team, TeamMember

NAMED_BY_ADDRESS = (EntityType.MAIL, EntityType.INVITATION)


def list_teams(session: Session, user_id: int) -> Sequence[Any]:
    """Return id, name, role and since when, of the teams that the account is in."""
    columns = Team.id, Team.name, TeamMember.role, TeamMember.created_at.label("since")
    statement = select(*columns).join(Team, Team.id == TeamMember.team_id)
    return session.execute(statement.where(TeamMember.user_id == user_id).order_by(Team.id)).all()


def find_accepted_invitation(session: Session, user_id: int) -> Invitation | None:
    """Return the invitation by which the account came; None if it came otherwise."""
    return session.scalar(select(Invitation).where(Invitation.accepted_user_id == user_id))


def list_mails(session: Session, address: str) -> Sequence[OutboxMail]:
    """Return the mails to an address that are still known, the oldest first."""
    statement = select(OutboxMail).where(OutboxMail.recipient == address)
    return session.scalars(statement.order_by(OutboxMail.created_at, OutboxMail.id)).all()


def list_previous_addresses(session: Session, user_id: int) -> Sequence[str]:
    """Return the details of the entries in which the account had another address.

    Not of all that it made: an administrator changes the addresses of others.
    """
    statement = select(AuditEntry.details).where(
        AuditEntry.entity_type == EntityType.USER,
        AuditEntry.entity_id == user_id,
        AuditEntry.details.contains('"previous_email"'),
    )
    return [details or "" for details in session.scalars(statement)]


def remove_invitations(session: Session, user_id: int, addresses: Collection[str]) -> None:
    """Delete the invitations of these addresses, and the one that the account accepted."""
    theirs = or_(Invitation.email.in_(addresses), Invitation.accepted_user_id == user_id)
    bulk.change(session, delete(Invitation).where(theirs))


def remove_mails(session: Session, addresses: Collection[str]) -> None:
    """Delete the mails to these addresses, also those that wait."""
    bulk.change(session, delete(OutboxMail).where(OutboxMail.recipient.in_(addresses)))


def remove_pending_identities(session: Session, user_id: int, addresses: Collection[str]) -> None:
    """Delete what waits of the account's identities, or for these addresses."""
    whose = tuple_(PendingIdentity.identity_namespace, PendingIdentity.subject)
    mine = select(Identity.identity_namespace, Identity.subject).where(Identity.user_id == user_id)
    theirs = or_(PendingIdentity.target_email.in_(addresses), whose.in_(mine))
    bulk.change(session, delete(PendingIdentity).where(theirs))


def list_erasures(session: Session, before: datetime, after: datetime) -> Sequence[Erasure]:
    """Return the accounts that were deleted before a time, or after one, and still have traces."""
    settled = or_(Erasure.deleted_at <= before, Erasure.deleted_at > after)
    return session.scalars(select(Erasure).where(settled)).all()


def list_traces(
    session: Session, user_id: int, addresses: Collection[str], after: int, most: int
) -> Sequence[Any]:
    """Return up to `most` entries by, about and to the account that may name it, by id."""
    to_it = and_(
        AuditEntry.entity_type.in_(NAMED_BY_ADDRESS), AuditEntry.entity_name.in_(addresses)
    )
    columns = ("entity_name", "details", "ip_address", "user_agent")
    says_something = or_(*(getattr(AuditEntry, name).is_not(None) for name in columns))
    statement = select(*AuditEntry.__table__.columns).where(
        or_(is_by_or_about(user_id), to_it), says_something, AuditEntry.id > after
    )
    return session.execute(statement.order_by(AuditEntry.id).limit(most)).all()


def replace_entries(session: Session, entries: Sequence[dict[str, Any]]) -> None:
    """Change columns of entries; each has its id."""
    session.execute(update(AuditEntry), entries)


def settle(session: Session, erasure: Erasure, addresses: Collection[str]) -> None:
    """Forget an account once its last mail is finished, and that mail with it."""
    its_mails = OutboxMail.recipient.in_(addresses), OutboxMail.created_at <= erasure.deleted_at
    waits = select(OutboxMail.id).where(*its_mails, OutboxMail.status.in_(UNFINISHED))
    if session.scalar(waits.limit(1)) is None:
        done = delete(OutboxMail).where(*its_mails, OutboxMail.status.in_(FINISHED))
        bulk.change(session, done)
        bulk.change(session, delete(Erasure).where(Erasure.user_id == erasure.user_id))
