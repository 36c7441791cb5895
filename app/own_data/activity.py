"""What happened to an account, as its owner may see it."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from heapq import merge
from itertools import islice
from typing import Any

from sqlalchemy import ColumnElement

from app.audit import queries
from app.audit.models import AuditEntry
from app.core.runtime import Runtime
from app.store.paging import Page, Paging
from app.users.models import Account

# The members of `details` that an owner may see. Others name people, or are of use to nobody.
IMPERSONAL = frozenset(
    {
        "applied",
        "attempt_count",
        "available_methods",
        "changed_fields",
        "custom_remove_count",
        "custom_upsert_count",
        "expires_in",
        "failure_reason",
        "format",
        "method",
        "mfa_required",
        "must_change_password",
        "next_role",
        "password_change_required",
        "policy_group_id",
        "previous_must_change_password",
        "previous_policy_group_id",
        "previous_role",
        "previous_status",
        "previous_storage_quota",
        "remember_device",
        "remembered_browser",
        "removed",
        "removed_browsers",
        "removed_factors",
        "removed_role",
        "removed_ways_in",
        "resend_after",
        "revoked_current",
        "role",
        "scopes",
        "source",
        "status",
        "storage_quota",
        "template_code",
        "token_id",
        "version",
    }
)
PERSONAL = frozenset(
    {
        "display_name",
        "issuer",
        "name",
        "new_email",
        "next_name",
        "passkey_id",
        "previous_email",
        "previous_name",
        "provider_key",
        "provider_name",
        "session_id",
        "subject",
    }
)
BATCH = 500


def read_page(rt: Runtime, account: Account, paging: Paging, **chosen: Any) -> Page:
    """Return a page of what the account did and of what others did to it.

    `chosen` are members of the audit log's `EntryFilter`.
    """
    conditions = _conditions(rt, account, queries.EntryFilter(**chosen))
    with rt.reading() as session:
        page = queries.read_page(session, paging, *conditions)
    return replace(page, items=list(shown(account.id, page.items)))


def read_batches(rt: Runtime, account: Account, last_id: int) -> Iterator[list[dict[str, Any]]]:
    """Yield everything up to the entry `last_id`, newest first, a part at a time.

    What the account did and what others did to it are read apart, each by its own index: together
    they would be sorted anew for every part.
    """
    me = account.id
    by_others = [(about, AuditEntry.user_id != me) for about in queries.are_about(me)]
    streams = (
        _rows(rt, account, last_id, *conditions)
        for conditions in ((AuditEntry.user_id == me,), *by_others)
    )
    newest_first = merge(*streams, key=lambda row: (row.place, row.id), reverse=True)
    while rows := list(islice(newest_first, BATCH)):
        yield list(shown(me, rows))


def _rows(
    rt: Runtime, account: Account, last_id: int, *conditions: ColumnElement[bool]
) -> Iterator[Any]:
    part, after = Paging(BATCH, 0, "created_at"), None
    conditions = (*conditions, *_not_older(rt, account), AuditEntry.id <= last_id)
    while True:
        with rt.reading() as session:
            rows = queries.read_batch(session, part, after, *conditions)
        yield from rows
        if len(rows) < BATCH:
            return
        after = rows[-1].place, rows[-1].id
        rt.clock.sleep(0)


def members(details: str | None, allowed: frozenset[str]) -> dict[str, Any]:
    """Return the allowed members of the stored details of an entry."""
    stored = json.loads(details) if details else {}
    return {name: value for name, value in stored.items() if name in allowed}


def shown(user_id: int, entries: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """Yield entries as their owner sees them: nothing tells which administrator it was, or where.

    `by` is me, administrator, or system, which is also the command line.
    """
    for entry in entries:
        is_mine = entry.user_id == user_id
        other = "administrator" if entry.user_id else "system"
        yield {
            **{name: getattr(entry, name) for name in ("id", "action", "entity_type")},
            "at": entry.created_at,
            "by": "me" if is_mine else other,
            "entity_name": entry.entity_name if is_mine else None,
            "details": members(entry.details, IMPERSONAL | PERSONAL),
            "ip_address": entry.ip_address if is_mine else None,
            "user_agent": entry.user_agent if is_mine else None,
        }


def _conditions(
    rt: Runtime, account: Account, chosen: queries.EntryFilter
) -> Iterator[ColumnElement[bool]]:
    yield queries.is_by_or_about(account.id)
    yield from queries.matching(chosen)
    yield from _not_older(rt, account)


def _not_older(rt: Runtime, account: Account) -> Iterator[ColumnElement[bool]]:
    if rt.database.is_sqlite:  # which used to reuse the ids of deleted accounts
        yield AuditEntry.created_at >= account.created_at
