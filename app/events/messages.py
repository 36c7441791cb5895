"""Storage events: the messages the file service publishes and the events a page receives.

The message is described by docs/storage-event.schema.json, the event by the API description.
"""

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, NoReturn

from sqlalchemy.orm import Session

from app.core.runtime import Runtime
from app.events.errors import EventTooLarge
from app.store.db import after_commit
from app.store.redis import EVENTS_CHANNEL
from app.web.schema import INT64, timestamp

# In characters. A larger change is better published as `sync.required`: pages then reload.
MAX_MESSAGE_LENGTH = 64 * 1024
KEEP_ALIVE = b": keep-alive\n\n"
_MOMENT = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", re.ASCII | re.IGNORECASE
)


class Kind(StrEnum):
    """What happened."""

    FILE_CREATED = "file.created"
    FILE_UPDATED = "file.updated"
    FILE_TRASHED = "file.trashed"
    FILE_RESTORED_FROM_TRASH = "file.restored_from_trash"
    FILE_PURGED = "file.purged"
    FILE_VERSION_RESTORED = "file.version_restored"
    FILE_VERSION_DELETED = "file.version_deleted"
    FOLDER_CREATED = "folder.created"
    FOLDER_UPDATED = "folder.updated"
    FOLDER_TRASHED = "folder.trashed"
    FOLDER_RESTORED_FROM_TRASH = "folder.restored_from_trash"
    FOLDER_PURGED = "folder.purged"
    TAG_CREATED = "tag.created"
    TAG_UPDATED = "tag.updated"
    TAG_DELETED = "tag.deleted"
    TAG_ASSIGNMENT_CHANGED = "tag.assignment_changed"
    LOCK_CREATED = "lock.created"
    LOCK_DELETED = "lock.deleted"
    SYNC_REQUIRED = "sync.required"


class MessageMalformed(ValueError):
    """The text is not a message of the documented format."""


@dataclass(frozen=True)
class Audience:
    """The recipients: one user, the members of one team, or everybody if both are None."""

    user_id: int | None = None
    team_id: int | None = None

    def wire(self) -> Any:
        """Return the `audience` member of a message."""
        if self.user_id is not None:
            return {"user": self.user_id}
        return "any" if self.team_id is None else {"team": self.team_id}


EVERYBODY = Audience()


@dataclass(frozen=True)
class StorageEvent:
    """One change. `storage_delta` is in bytes; None if the quota is not involved.

    `workspace` is None only for `sync.required`, which makes a page reload everything.
    """

    kind: Kind
    workspace: dict[str, Any] | None
    at: datetime
    file_ids: tuple[int, ...] = ()
    folder_ids: tuple[int, ...] = ()
    affected_parent_ids: tuple[int, ...] = ()
    root_affected: bool = False
    affects_quota: bool = False
    storage_delta: int | None = None

    def wire(self) -> dict[str, Any]:
        """Return the payload of a frame; every key is always present."""
        return {
            "kind": self.kind.value,
            "workspace": self.workspace,
            "file_ids": sorted(set(self.file_ids)),
            "folder_ids": sorted(set(self.folder_ids)),
            "affected_parent_ids": sorted(set(self.affected_parent_ids)),
            "root_affected": self.root_affected,
            "affects_quota": self.affects_quota,
            "storage_delta": self.storage_delta,
            "at": timestamp(self.at),
        }

    def frame(self) -> bytes:
        """Return the event as a frame of the stream (WHATWG HTML, server-sent events)."""
        return b"data: " + json.dumps(self.wire(), separators=(",", ":")).encode() + b"\n\n"


@dataclass(frozen=True)
class Message:
    """What is published on the Redis channel."""

    audience: Audience
    event: StorageEvent

    def text(self) -> str:
        """Return the message as JSON text, as published."""
        wire = {"audience": self.audience.wire(), "event": self.event.wire()}
        return json.dumps(wire, separators=(",", ":"))


def sync_required(at: datetime) -> StorageEvent:
    """Return the event that makes a page reload everything, as it may have missed something."""
    return StorageEvent(Kind.SYNC_REQUIRED, None, at, affects_quota=True)


def publish(rt: Runtime, audience: Audience, event: StorageEvent) -> Message:
    """Publish an event to every process; it is not stored, so clients not connected miss it.

    Call it after the commit: a page that hears of a change fetches it right away.
    Raises: EventTooLarge; RedisError if the event could not be published.
    """
    message = Message(audience, event)
    text = message.text()
    if len(text) > MAX_MESSAGE_LENGTH:
        raise EventTooLarge
    rt.redis.client.publish(EVENTS_CHANNEL, text)
    return message


def sync_after_commit(rt: Runtime, session: Session, user_id: int) -> None:
    """Make the pages of one account reload everything, once the transaction is committed.

    Pages that this does not reach go on as they are until they reload by themselves.
    """
    text = Message(Audience(user_id=user_id), sync_required(rt.clock.now())).text()
    publish = rt.redis.fail_fast.attempt
    after_commit(session, lambda: publish(lambda redis: redis.publish(EVENTS_CHANNEL, text)))


def parse(text: str) -> Message:
    """Parse a published message; unknown members are ignored.

    Raises: MessageMalformed.
    """
    try:
        wire = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise MessageMalformed("not JSON") from None
    return Message(_audience(_member(wire, "audience")), _event(_member(wire, "event")))


def _event(wire: Any) -> StorageEvent:
    kind, delta = _kind(_member(wire, "kind")), _member(wire, "storage_delta")
    return StorageEvent(
        kind=kind,
        workspace=_workspace(_member(wire, "workspace"), kind),
        at=_moment(_member(wire, "at")),
        file_ids=_ids(_member(wire, "file_ids")),
        folder_ids=_ids(_member(wire, "folder_ids")),
        affected_parent_ids=_ids(_member(wire, "affected_parent_ids")),
        root_affected=_flag(_member(wire, "root_affected")),
        affects_quota=_flag(_member(wire, "affects_quota")),
        storage_delta=None if delta is None else _number(delta),
    )


def _member(wire: Any, name: str) -> Any:
    if not isinstance(wire, dict) or name not in wire:
        raise MessageMalformed(f"{name} is missing")
    return wire[name]


def _audience(wire: Any) -> Audience:
    if wire == "any":
        return EVERYBODY
    if isinstance(wire, dict) and len(wire) == 1:
        if "user" in wire:
            return Audience(user_id=_number(wire["user"]))
        if "team" in wire:
            return Audience(team_id=_number(wire["team"]))
    raise MessageMalformed("unknown audience")


def _kind(wire: Any) -> Kind:
    try:
        return Kind(wire)
    except ValueError:
        raise MessageMalformed("unknown kind") from None


def _workspace(wire: Any, kind: Kind) -> dict[str, Any] | None:
    if wire is None and kind is Kind.SYNC_REQUIRED:
        return None
    match wire:
        case {"kind": "personal"}:
            return {"kind": "personal"}
        case {"kind": "team", "team_id": team_id}:
            return {"kind": "team", "team_id": _number(team_id)}
    raise MessageMalformed("unknown workspace")


def _ids(wire: Any) -> tuple[int, ...]:
    if not isinstance(wire, list):
        raise MessageMalformed("expected a list of ids")
    return tuple(map(_number, wire))


def _number(wire: Any) -> int:
    if type(wire) is not int or not -INT64 <= wire < INT64:
        raise MessageMalformed("expected an integer of 64 bits")
    return wire


def _flag(wire: Any) -> bool:
    if not isinstance(wire, bool):
        raise MessageMalformed("expected true or false")
    return wire


def _moment(wire: Any) -> datetime:
    try:
        if _MOMENT.fullmatch(wire):
            return datetime.fromisoformat(wire.upper()).astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        pass
    raise MessageMalformed("at is not an RFC 3339 time")


def _refuse(_name: str) -> NoReturn:
    raise ValueError("NaN and Infinity are not JSON")
