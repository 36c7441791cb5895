"""`flask events`: publish a storage event, or watch published ones."""

import itertools
import json
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Any, TypeVar

import click

from app.core.runtime import Runtime
from app.events import messages
from app.events.messages import (
    EVERYBODY,
    Audience,
    Kind,
    Message,
    MessageMalformed,
    StorageEvent,
    parse,
)
from app.store.pubsub import Channel, Listener
from app.store.redis import EVENTS_CHANNEL
from app.teams import service as teams
from app.users import service as users
from app.users.cli import complete_user
from app.web.cli import Commands, Output, Word, printable
from app.web.runtime import runtime

F = TypeVar("F", bound=Callable[..., Any])

MAX_INT64 = 2**63 - 1

group = Commands("events", help="Live storage events, as open pages receive them.")
# Fields that a line of text shows anyway, or implies; not repeated as details.
IMPLIED_FIELDS = frozenset({"at", "kind", "workspace"})


def ids(what: str, help_text: str) -> Callable[[F], F]:
    """Add an option that takes ids, such as `--file-id`."""
    of_any = click.IntRange(1, MAX_INT64)
    return click.option(f"--{what}-id", f"{what}_ids", type=of_any, multiple=True, help=help_text)


@group.command("publish", epilog=f"KIND is one of {', '.join(Kind)}.")
@click.option(
    "--user",
    shell_complete=complete_user,
    help="Tell this account: id, username or e-mail address.",
)
@click.option("--team", help="Tell the members of this team: id or name.")
@click.option("--any", "everybody", is_flag=True, help="Tell everybody.")
@click.option("--kind", type=Word(Kind), metavar="KIND", required=True, help="What happened.")
@ids("file", "A file; may be repeated.")
@ids("folder", "A folder; may be repeated.")
@ids("parent", "A folder whose content it changed; may be repeated.")
@click.option("--root", is_flag=True, help="The root of the workspace is affected.")
@click.option(
    "--delta",
    type=click.IntRange(-MAX_INT64 - 1, MAX_INT64),
    help="Bytes gained or freed.",
)
def publish(
    user: str | None,
    team: str | None,
    everybody: bool,
    kind: Kind,
    file_ids: tuple[int, ...],
    folder_ids: tuple[int, ...],
    parent_ids: tuple[int, ...],
    root: bool,
    delta: int | None,
) -> Output:
    """Publish one event; needs --user, --team or --any."""
    if [user is not None, team is not None, everybody].count(True) != 1:
        raise click.UsageError("Give one of --user, --team and --any.")
    rt = runtime()
    audience = _audience(rt, user, team)
    is_sync = kind == Kind.SYNC_REQUIRED
    event = StorageEvent(
        kind=kind,
        workspace=None if is_sync else _workspace(audience),
        at=rt.clock.now(),
        file_ids=file_ids,
        folder_ids=folder_ids,
        affected_parent_ids=parent_ids,
        root_affected=root,
        affects_quota=is_sync or bool(delta),
        storage_delta=delta,
    )
    message = messages.publish(rt, audience, event)
    return Output(json.loads(message.text()), f"published {_line(message)}")


@group.command("tail")
@click.option(
    "--count",
    type=click.IntRange(1),
    help="Stop after this many events.",
)
def tail(count: int | None) -> Iterator[Output]:
    """Print what is published, until Ctrl-C; with --json, one message per line."""
    rt = runtime()
    rt.redis.client.ping()
    texts: SimpleQueue[str] = SimpleQueue()

    def take(arrived: list[str]) -> None:
        for text in arrived:
            texts.put(text)

    channel = Channel(EVENTS_CHANNEL, on_messages=take, on_gap=lambda: None)
    listener = Listener(rt.redis.client, rt.clock, [channel])
    listener.start()
    try:
        for _ in range(count) if count else itertools.count():
            yield _shown(texts.get())
    except KeyboardInterrupt:
        return
    finally:
        listener.close()


def _audience(rt: Runtime, user: str | None, team: str | None) -> Audience:
    with rt.reading() as session:
        if user is not None:
            return Audience(user_id=users.named(session, user).id)
        if team is not None:
            return Audience(team_id=teams.named(session, team).id)
    return EVERYBODY


def _workspace(audience: Audience) -> dict[str, Any]:
    if audience.team_id is None:
        return {"kind": "personal"}
    return {"kind": "team", "team_id": audience.team_id}


def _shown(text: str) -> Output:
    try:
        message = parse(text)
    except MessageMalformed as error:
        return Output({"malformed": text}, printable(f"malformed ({error}): {text}"))
    return Output(json.loads(message.text()), _line(message))


def _line(message: Message) -> str:
    wire = message.event.wire()
    members = {name: value for name, value in wire.items() if value and name not in IMPLIED_FIELDS}
    details = (f"{name}={json.dumps(value)}" for name, value in members.items())
    return " ".join([wire["at"], wire["kind"], f"to {_whom(message.audience)}", *details])


def _whom(audience: Audience) -> str:
    if audience.user_id is not None:
        return f"user {audience.user_id}"
    return "everybody" if audience.team_id is None else f"team {audience.team_id}"
