"""Accounts that nobody has activated."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, delete, exists, or_, select
from sqlalchemy.orm import Session

from app.contact_verification.models import ContactToken
from app.teams.models import TeamMember
from app.users.models import Role, Status, User


def remove_abandoned(
    session: Session, before: datetime, now: datetime, *, name_key: str, address: str
) -> Sequence[int]:
    """Delete the abandoned accounts with this name or address; return their ids."""
    return _delete(session, before, now, or_(User.username_key == name_key, User.email == address))


def delete_abandoned(session: Session, before: datetime, now: datetime, most: int) -> Sequence[int]:
    """Delete up to `most` abandoned accounts; return their ids."""
    some = select(User.id).where(*_is_abandoned(before, now)).order_by(User.id).limit(most)
    # What makes them so is asked again of each row: its owner may have activated it meanwhile.
    return _delete(session, before, now, User.id.in_(some))


def _delete(
    session: Session, before: datetime, now: datetime, which: ColumnElement[bool]
) -> Sequence[int]:
    gone = delete(User).where(which, *_is_abandoned(before, now)).returning(User.id)
    return session.scalars(gone, execution_options={"synchronize_session": False}).all()


def _is_abandoned(before: datetime, now: datetime) -> tuple[ColumnElement[bool], ...]:
    """Whether accounts have waited for activation since `before`, and nobody counts on them."""
    is_mailed = exists().where(ContactToken.user_id == User.id, ContactToken.expires_at > now)
    is_member = exists().where(TeamMember.user_id == User.id)
    is_waiting = User.activated_at.is_(None), User.status == Status.ACTIVE, User.role == Role.USER
    return *is_waiting, User.created_at < before, ~is_mailed, ~is_member
