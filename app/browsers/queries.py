"""Statements on known browsers."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, case, delete, exists, func, insert, select, update
from sqlalchemy.orm import Session, aliased

from app.browsers.models import Browser, Grant, Others
from app.store import bulk

_IS_GRANTED = Browser.remembered_until.is_not(None)
_NOTHING = {"remembered_at": None, "remembered_until": None}


def find_grant(session: Session, user_id: int, digest: str) -> Grant | None:
    """Return how a browser of an account is remembered; None if it has no such browser."""
    columns = select(Browser.remembered_at, Browser.remembered_until)
    row = session.execute(columns.where(*_is(user_id, digest))).one_or_none()
    return Grant(*row) if row else None


def see(
    session: Session, user_id: int, digest: str, *, address: str | None, **seen: Any
) -> Grant | None:
    """Note that a browser of an account signs in again; return how it is remembered.

    None, and nothing is noted, if the account has no such browser.
    """
    ip_address = func.coalesce(address, Browser.ip_address)
    statement = update(Browser).where(*_is(user_id, digest))
    statement = statement.values(ip_address=ip_address, seen_since_reset=True, **seen)
    granted = statement.returning(Browser.remembered_at, Browser.remembered_until)
    row = session.execute(granted.execution_options(synchronize_session=False)).one_or_none()
    return Grant(*row) if row else None


def count_others(session: Session, user_id: int, digest: str | None) -> Others:
    """Return what an account has, and whether a browser of any account has `digest`."""
    of_anybody = aliased(Browser)
    is_issued = exists(select(of_anybody.id).where(of_anybody.digest == digest))
    seen = func.count().filter(Browser.seen_since_reset)
    statement = select(func.count(), seen, is_issued.label("is_issued"))
    return Others(*session.execute(statement.where(Browser.user_id == user_id)).one())


def add(session: Session, **columns: Any) -> None:
    """Insert a browser."""
    session.execute(insert(Browser).values(seen_since_reset=True, **columns))


def drop_oldest(session: Session, user_id: int, number: int, now: datetime) -> None:
    """Delete so many browsers of an account: those not remembered first, then the oldest."""
    is_remembered = case((Browser.remembered_until > now, 1), else_=0)
    oldest = select(Browser.id).where(Browser.user_id == user_id)
    oldest = oldest.order_by(is_remembered, Browser.last_seen_at, Browser.id).limit(number)
    bulk.change(session, delete(Browser).where(Browser.id.in_(oldest)))


def replace_digest(session: Session, old: str, new: str) -> None:
    """Give a browser another value, in all of its accounts."""
    bulk.change(session, update(Browser).where(Browser.digest == old).values(digest=new))


def void(session: Session, user_id: int, *, except_digest: str | None = None) -> None:
    """Remember no browser of an account any more, but for one."""
    theirs = update(Browser).where(Browser.user_id == user_id, _IS_GRANTED)
    if except_digest is not None:
        theirs = theirs.where(Browser.digest != except_digest)
    bulk.change(session, theirs.values(_NOTHING))


def void_one(session: Session, user_id: int, browser_id: int) -> None:
    """Remember one browser of an account no more."""
    one = update(Browser).where(Browser.user_id == user_id, Browser.id == browser_id)
    bulk.change(session, one.values(_NOTHING))


def void_everywhere(session: Session) -> None:
    """Remember no browser of anybody any more."""
    bulk.change(session, update(Browser).where(_IS_GRANTED).values(_NOTHING))


def begin_anew(session: Session, user_id: int) -> None:
    """Note that none of an account's browsers has signed in since its password was reset."""
    theirs = update(Browser).where(Browser.user_id == user_id)
    bulk.change(session, theirs.values(seen_since_reset=False))


def list_all(session: Session, user_id: int) -> Sequence[Browser]:
    """Return the browsers of an account, the last seen first."""
    theirs = select(Browser).where(Browser.user_id == user_id)
    return session.scalars(theirs.order_by(Browser.last_seen_at.desc(), Browser.id.desc())).all()


def find_unused(session: Session, before: datetime, most: int) -> Sequence[int]:
    """Return the ids of up to `most` browsers not seen since, but never an account's last seen.

    Most of what its index has from that time are browsers of those who came back no more.
    """
    return session.scalars(select(Browser.id).where(*_is_unused(before)).limit(most)).all()


def delete_unused(session: Session, before: datetime, browser_ids: Sequence[int]) -> int:
    """Delete those of these browsers that are still unused; return how many."""
    these = Browser.id.in_(browser_ids)
    return bulk.change(session, delete(Browser).where(these, *_is_unused(before)))


def _is_unused(before: datetime) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    newer = aliased(Browser)
    is_newer = newer.last_seen_at > Browser.last_seen_at
    same_time = newer.last_seen_at == Browser.last_seen_at
    has_newer = exists(
        select(newer.id).where(
            newer.user_id == Browser.user_id, is_newer | (same_time & (newer.id > Browser.id))
        )
    )
    return Browser.last_seen_at < before, has_newer


def _is(user_id: int, digest: str) -> tuple[Any, Any]:
    return Browser.user_id == user_id, Browser.digest == digest
