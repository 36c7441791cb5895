"""Reading the audit log: its entries, each with who made it, and its actions."""

import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from sqlalchemy.orm import Session

from app.audit import keys as audit_keys
from app.audit import queries
from app.audit.models import Action, AuditEntry, EntityType, subject_of
from app.core.runtime import Runtime
from app.core.texts import typed_id
from app.store.paging import Page, Paging
from app.teams import service as teams
from app.users import queries as users_queries
from app.users import service as users
from app.users.errors import UserNotFound
from app.users.models import Account

COUNTED = timedelta(days=30)
# What happened to a member, and what the entry says of its role.
MEMBER_CHANGES = {
    Action.TEAM_MEMBER_ADD: {"role": "role"},
    Action.TEAM_MEMBER_UPDATE: {"previous_role": "previous_role", "next_role": "next_role"},
    Action.TEAM_MEMBER_REMOVE: {"role": "removed_role"},
}
# How version 0.2 wrote it: changes of the team that named the member so.
FORMER = {
    "added_user_id": (Action.TEAM_MEMBER_ADD, {"role": "role"}),
    "changed_user_id": (
        Action.TEAM_MEMBER_UPDATE,
        {"previous_role": "previous_role", "next_role": "role"},
    ),
    "removed_user_id": (Action.TEAM_MEMBER_REMOVE, {"role": "role"}),
}

Entry = dict[str, Any]


def read_page(rt: Runtime, paging: Paging, chosen: queries.EntryFilter) -> Page:
    """Return a page of entries, each with the account that acted as `user`, if there is one."""
    with rt.reading() as session:
        page = queries.read_page(session, paging, *queries.matching(chosen))
        return replace(page, items=with_actors(rt, session, page.items))


def read_page_of_account(rt: Runtime, user_id: int, paging: Paging) -> Page:
    """Return a page of the entries that an account made or that are about it, like `read_page`.

    Raises: UserNotFound.
    """
    with rt.reading() as session:
        account = users.get(session, user_id)
        # SQLite used to reuse ids: what is older than the account is about a previous one.
        own = (AuditEntry.created_at >= account.created_at,) if rt.database.is_sqlite else ()
        page = queries.read_page(session, paging, queries.is_by_or_about(user_id), *own)
        return replace(page, items=with_actors(rt, session, page.items))


def read_page_of_team(rt: Runtime, paging: Paging, chosen: queries.EntryFilter) -> Page:
    """Return a page of entries like `read_page`, with the members that `with_members` adds."""
    with rt.reading() as session:
        page = queries.read_page(session, paging, *queries.matching(chosen))
        entries = with_members(session, with_actors(rt, session, page.items))
    for entry in entries:
        # Those of version 0.2 are called as today's are.
        if shown := entry["presentation"]:
            entry["action"] = shown["summary"]["code"]
    return replace(page, items=entries)


def with_actors(rt: Runtime, session: Session, entries: Iterable[Any]) -> list[Entry]:
    """Return entries with the account that acted as `user`; None if it no longer exists."""
    entries = list(entries)
    named = users_queries.list_named(session, {entry.user_id for entry in entries})

    def actor(entry: Any) -> Account | None:
        account = named.get(entry.user_id)
        # SQLite used to reuse ids: an entry older than the account is a previous one's.
        is_another = account and rt.database.is_sqlite and entry.created_at < account.created_at
        return None if is_another else account

    return [{**entry._asdict(), "user": actor(entry)} for entry in entries]


def with_members(session: Session, entries: list[Entry]) -> list[Entry]:
    """Add whom the entry of a team is about, and the roles; `details` is parsed.

    `member_id`, `member` (None without such an account), `role`, `previous_role`, `next_role` and
    `presentation`, which says what happened to the member, are None where they do not apply.
    """
    for entry in entries:
        details = entry["details"] = json.loads(entry["details"] or "null")
        about = details if isinstance(details, dict) else {}
        named_by = next((name for name in FORMER if name in about), "member_user_id")
        action, roles = FORMER.get(named_by) or (
            entry["action"],
            MEMBER_CHANGES.get(entry["action"]),
        )
        entry["member_id"] = about.get(named_by) if roles else None
        entry["presentation"] = {"summary": {"code": action}} if roles else None
        for name in ("role", "previous_role", "next_role"):
            entry[name] = about.get((roles or {}).get(name))
    named = users_queries.list_named(session, {entry["member_id"] for entry in entries} - {None})
    return [{**entry, "member": named.get(entry["member_id"])} for entry in entries]


def list_newest(rt: Runtime, entry_filter: queries.EntryFilter, most: int) -> list[Entry]:
    """Return the newest matching entries, each with the account that acted as `user`."""
    with rt.reading() as session:
        return with_actors(rt, session, queries.list_newest(session, entry_filter, most))


def filter_of(
    rt: Runtime, user: str | None, team: str | None, **chosen: Any
) -> queries.EntryFilter:
    """Return a filter for what one actor did, or what was done to a team; None means any.

    `user` may also be the id 0, or the id of an account that no longer exists.
    Raises: UserNotFound, TeamNotFound, NameAmbiguous.
    """
    entry_filter = queries.EntryFilter(**chosen)
    with rt.reading() as session:
        if team is not None:
            about = teams.named(session, team).id
            entry_filter = replace(entry_filter, entity_type=EntityType.TEAM, entity_id=about)
        return entry_filter if user is None else _filter_by_actor(rt, session, user, entry_filter)


def list_actions(rt: Runtime) -> list[Entry]:
    """Return every action, what it is about, and how often it was recorded in 30 days."""
    is_enabled = rt.settings.get(audit_keys.ENABLED)
    recorded = rt.settings.get(audit_keys.RECORDED_ACTIONS)
    with rt.reading() as session:
        counts = queries.count_by_action(session, rt.clock.now() - COUNTED)
    return [
        {
            "action": action,
            "entity_type": subject_of(action),
            "is_recorded": is_enabled and action in recorded,
            "count_30d": counts.get(action, 0),
        }
        for action in Action
    ]


def _filter_by_actor(
    rt: Runtime, session: Session, typed: str, entry_filter: queries.EntryFilter
) -> queries.EntryFilter:
    try:
        account = users.named(session, typed)
    except UserNotFound:
        user_id = typed_id(typed)
        if user_id is None:
            raise
        return replace(entry_filter, user_id=user_id)
    since = entry_filter.since
    if rt.database.is_sqlite:  # which used to reuse the ids of deleted accounts
        since = max(since or account.created_at, account.created_at)
    return replace(entry_filter, user_id=account.id, since=since)
