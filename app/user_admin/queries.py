"""Lists that administrators read: accounts, filtered by what several areas know about them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import or_, select
from sqlalchemy.orm import Session, aliased

from app.core import letter
from app.core.texts import folded, typed_id
from app.mfa.models import MfaFactor
from app.store.paging import Page, Paging, read_items
from app.store.search import has_part
from app.users import queries as users
from app.users.models import Account, Role, Standing, Status, User, UserProfile

# Usernames are ordered by the form in which they are unique, which has an index.
SORT_COLUMNS = {
    "id": User.id,
    "username": User.username_key,
    "email": User.email,
    "role": User.role,
    "status": User.status,
    "storage_used": User.storage_used,
    "storage_quota": User.storage_quota,
    "created_at": User.created_at,
    "updated_at": User.updated_at,
}


@dataclass(frozen=True)
class AccountFilter:
    """A filter for accounts; None matches all.

    `keyword` is a part of a username, address or display name, or an id. The standing `active`
    includes accounts that are not activated yet, unless `is_activated` is true.
    """

    keyword: str | None = None
    role: Role | None = None
    standing: Standing | None = None
    is_activated: bool | None = None
    policy_group_id: int | None = None
    has_second_factor: bool | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None


def list_accounts(session: Session, most: int | None, chosen: AccountFilter) -> list[Account]:
    """Return the first `most` matching accounts, ordered by id; None means all of them."""
    return users.list_matching(session, most, *_conditions(chosen))


def read_accounts(session: Session, paging: Paging, chosen: AccountFilter) -> Page:
    """Return a page of accounts."""
    matching = select(User.id).where(*_conditions(chosen))
    return read_items(
        session, matching, SORT_COLUMNS, paging, lambda ids: users.list_named(session, ids)
    )


def list_misread(session: Session) -> Sequence[str]:
    """Return the names of accounts with an address that is no longer accepted, or a pending one.

    Its local part may be taken for something encoded, see `email_address.is_misread`.
    """
    addresses = User.email, User.pending_email
    found = select(User.username).where(
        or_(*(address.contains(letter.ENCODED_WORD, autoescape=True) for address in addresses))
    )
    return session.scalars(found.order_by(User.id)).all()


def _conditions(chosen: AccountFilter) -> Iterator[Any]:
    if chosen.keyword is not None:
        yield _is_named(chosen.keyword.strip())
    yield from _has_standing(chosen)
    if chosen.role is not None:
        yield User.role == chosen.role
    if chosen.policy_group_id is not None:
        yield User.policy_group_id == chosen.policy_group_id
    if chosen.has_second_factor is not None:
        has_factor = User.id.in_(select(MfaFactor.user_id))
        yield has_factor if chosen.has_second_factor else ~has_factor
    if chosen.created_after is not None:
        yield User.created_at >= chosen.created_after
    if chosen.created_before is not None:
        yield User.created_at < chosen.created_before


def _is_named(part: str) -> Any:
    """Return a condition that PostgreSQL can answer by trigram indexes, if it has them."""
    display_name = UserProfile.display_name, UserProfile.display_name_folded
    by_profile = select(UserProfile.user_id).where(has_part(part, *display_name))
    user_id = typed_id(part)
    named = aliased(User)
    by_account = select(named.id).where(
        or_(
            named.username_key.contains(folded(part), autoescape=True),
            named.email.contains(folded(part), autoescape=True),
            *([named.id == user_id] if user_id is not None else []),
        )
    )
    return User.id.in_(by_account.union(by_profile))


def _has_standing(chosen: AccountFilter) -> Iterator[Any]:
    if chosen.standing is not None:
        is_disabled = chosen.standing is Standing.DISABLED
        yield User.status == (Status.DISABLED if is_disabled else Status.ACTIVE)
    is_activated = False if chosen.standing is Standing.PENDING else chosen.is_activated
    if is_activated is not None:
        never = User.activated_at.is_(None)
        yield ~never if is_activated else never
