"""Accounts that nobody has activated."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import ColumnElement, and_, delete, exists, or_, select
from sqlalchemy.orm import Session

from app.contact_verification.models import ContactToken
from app.teams.models import TeamMember
from app.users.models import Role, Status, User


class Times(NamedTuple):
    """An account registered before `due` is abandoned; with a valid link, before `overdue`."""

    now: datetime
    due: datetime
    overdue: datetime


def remove_abandoned(
    session: Session, times: Times, *, name_key: str, address: str
) -> Sequence[int]:
    """Delete the abandoned accounts with this name or address; return their ids."""
    return _delete(session, times, or_(User.username_key == name_key, User.email == address))


def delete_abandoned(session: Session, times: Times, most: int) -> Sequence[int]:
    """Delete up to `most` abandoned accounts; return their ids."""
    some = select(User.id).where(*_is_abandoned(times)).order_by(User.id).limit(most)
    # Their own rows are judged again as they are deleted: somebody may be activating one.
    return _delete(session, times, User.id.in_(some))


def _delete(session: Session, times: Times, which: ColumnElement[bool]) -> Sequence[int]:
    gone = delete(User).where(which, *_is_abandoned(times)).returning(User.id)
    return session.scalars(gone, execution_options={"synchronize_session": False}).all()


def _is_abandoned(times: Times) -> tuple[ColumnElement[bool], ...]:
    """Whether accounts wait for activation in vain, and are in no team."""
    is_mailed = exists().where(ContactToken.user_id == User.id, ContactToken.expires_at > times.now)
    # Anybody may have the link sent again and again.
    is_over = and_(User.created_at < times.due, or_(~is_mailed, User.created_at < times.overdue))
    is_member = exists().where(TeamMember.user_id == User.id)
    is_waiting = User.activated_at.is_(None), User.status == Status.ACTIVE, User.role == Role.USER
    return *is_waiting, is_over, ~is_member
