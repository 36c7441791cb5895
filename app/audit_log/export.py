"""The audit log as a file: streamed in batches, so that its length does not matter."""

import json
import re
from array import array
from collections.abc import Iterator
from dataclasses import replace
from enum import StrEnum
from typing import Any

from app.audit import queries
from app.audit import service as audit
from app.audit.models import Action, EntityType
from app.audit_log.errors import ExportTooLong
from app.audit_log.service import Entry, with_actors, with_members
from app.core.access import Operator
from app.core.runtime import Runtime
from app.core.spreadsheet import as_csv, head_of_csv
from app.store.paging import Paging
from app.web.schema import timestamp

MAX_ROWS = 100_000
BATCH = 100
# Between two batches; without it, a fast reader would have this process for itself.
PAUSE_SECONDS = 0.01
SECRETIVE = re.compile("passw|secret|token|credential|recovery_code|private", re.IGNORECASE)
COLUMNS = (
    "id",
    "created_at",
    "actor_user_id",
    "actor_username",
    "action",
    "entity_type",
    "entity_id",
    "entity_name",
    "detail",
    "ip_address",
    "user_agent",
    "member_user_id",
    "member_username",
    "role",
    "previous_role",
    "next_role",
)


class ExportFormat(StrEnum):
    """What the file is."""

    CSV = "csv"
    JSONL = "jsonl"


MEDIA_TYPES = {
    ExportFormat.CSV: "text/csv; charset=utf-8",
    ExportFormat.JSONL: "application/x-ndjson",
}


def export(
    rt: Runtime,
    by: Operator,
    paging: Paging,
    chosen: queries.EntryFilter,
    kind: ExportFormat,
) -> Iterator[bytes]:
    """Return the file piece by piece; the export itself is recorded, and is not in the file.

    For a member of a team, it does not tell the addresses and browsers of those who acted.

    Raises: ExportTooLong, before the first piece.
    """
    with rt.reading() as session:
        most = replace(paging, limit=MAX_ROWS + 1, offset=0)
        found = queries.read_page_of_ids(session, most, *queries.matching(chosen))
    if len(found.items) > MAX_ROWS:
        raise ExportTooLong
    with rt.transaction() as session:
        details = {"format": kind, "rows": len(found.items), "filters": _told(chosen)}
        about: dict[str, Any] = {"entity_name": "audit_log", "details": details}
        action = Action.ADMIN_EXPORT_AUDIT_LOG
        audit.record_by(rt, session, by, action, EntityType.SYSTEM_CONFIG, **about)
    return _pieces(rt, array("q", found.items), kind, has_clients=not by.is_team_member)


def file_name(rt: Runtime, kind: ExportFormat) -> str:
    """Return the name of an export that is made now."""
    return f"gatehouse-audit-{rt.clock.now():%Y-%m-%d}.{kind}"


def without_secrets(details: Any) -> Any:
    """Return details without members named like a secret, unless they are true or false."""
    if isinstance(details, list):
        return [without_secrets(one) for one in details]
    if not isinstance(details, dict):
        return details
    return {
        name: without_secrets(value)
        for name, value in details.items()
        if isinstance(value, bool) or not SECRETIVE.search(name)
    }


def _told(chosen: queries.EntryFilter) -> dict[str, object]:
    """Return the filters that are set, as they are written down.

    What may name somebody is left out: the entry would outlive that account.
    """
    given = {name: value for name, value in vars(chosen).items() if value is not None}
    moments = {name: timestamp(given[name]) for name in {"since", "until"} & given.keys()}
    personal = dict.fromkeys({"keyword", "ip_address"} & given.keys(), True)
    return given | moments | personal


def _pieces(
    rt: Runtime, ids: "array[int]", kind: ExportFormat, *, has_clients: bool
) -> Iterator[bytes]:
    """Yield the file; an order without an index is sorted once, for the ids, not for each batch."""
    write = _as_csv if kind is ExportFormat.CSV else _as_lines
    if kind is ExportFormat.CSV:
        yield head_of_csv(COLUMNS)
    for start in range(0, len(ids), BATCH):
        with rt.reading() as session:
            rows = queries.read_entries(session, ids[start : start + BATCH].tolist())
            entries = with_members(session, with_actors(rt, session, rows))
        if not has_clients:
            entries = [{**entry, "ip_address": None, "user_agent": None} for entry in entries]
        yield write(entries)
        rt.clock.sleep(PAUSE_SECONDS)


def _as_csv(entries: list[Entry]) -> bytes:
    return as_csv([_cells(entry) for entry in entries])


def _cells(entry: Entry) -> list[object]:
    user, member, details = entry["user"], entry["member"], without_secrets(entry["details"])
    return [
        entry["id"],
        timestamp(entry["created_at"]),
        entry["user_id"],
        user and user.username,
        *(entry[name] for name in ("action", "entity_type", "entity_id", "entity_name")),
        json.dumps(details, ensure_ascii=False) if details else None,
        *(entry[name] for name in ("ip_address", "user_agent", "member_id")),
        member and member.username,
        *(entry[name] for name in ("role", "previous_role", "next_role")),
    ]


def _as_lines(entries: list[Entry]) -> bytes:
    return b"".join(json.dumps(_line(e), ensure_ascii=False).encode() + b"\n" for e in entries)


def _line(entry: Entry) -> Entry:
    return {
        "id": entry["id"],
        "created_at": timestamp(entry["created_at"]),
        "user_id": entry["user_id"],
        "username": entry["user"] and entry["user"].username,
        **{name: entry[name] for name in ("action", "entity_type", "entity_id", "entity_name")},
        "details": without_secrets(entry["details"]),
        **{name: entry[name] for name in ("ip_address", "user_agent")},
    }
