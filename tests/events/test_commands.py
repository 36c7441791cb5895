"""`flask events publish` and `flask events tail`."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from jsonschema import Draft202012Validator

from app.events import messages
from app.events.errors import EventTooLarge
from app.events.messages import EVERYBODY, Kind, StorageEvent
from app.store.redis import EVENTS_CHANNEL
from tests.support.storage_events import SCHEMA


@pytest.fixture
def heard(rt, wait_for):
    """Return what was published since; waits for so many messages."""
    with rt.redis.client.pubsub() as subscription:
        subscription.subscribe(EVENTS_CHANNEL)
        wait_for(lambda: subscription.get_message(timeout=0.1))
        messages = []

        def take(number=1):
            def enough():
                message = subscription.get_message(timeout=0.1)
                if message is not None:
                    messages.append(json.loads(message["data"]))
                return len(messages) >= number

            wait_for(enough)
            return messages

        yield take


def test_an_event_is_published_as_documented(line, heard, user):
    shown = line.json(
        *("events", "publish", "--user", user.username, "--kind", "file.created"),
        *("--file-id", "3", "--file-id", "1", "--folder-id", "9", "--parent-id", "4"),
        *("--root", "--delta", "-1024"),
    )
    assert shown == {
        "audience": {"user": user.id},
        "event": {
            "kind": "file.created",
            "workspace": {"kind": "personal"},
            "file_ids": [1, 3],
            "folder_ids": [9],
            "affected_parent_ids": [4],
            "root_affected": True,
            "affects_quota": True,
            "storage_delta": -1024,
            "at": "2026-03-02T09:30:00Z",
        },
    }
    assert heard() == [shown]
    Draft202012Validator(SCHEMA).validate(shown)


def test_every_kind_can_be_published_to_everybody(line, heard):
    shown = [line.json("events", "publish", "--any", "--kind", kind.value) for kind in Kind]
    assert heard(len(Kind)) == shown
    for one, kind in zip(shown, Kind, strict=True):
        assert one["audience"] == "any"
        is_sync = kind is Kind.SYNC_REQUIRED
        assert (one["event"]["workspace"] is None) == is_sync
        assert one["event"]["affects_quota"] is is_sync
        Draft202012Validator(SCHEMA).validate(one)


def test_teams_and_users_are_named_in_every_way(line, user):
    made = line.json("teams", "create", "Crew", "--owner", user.username)
    for team in ("Crew", str(made["id"])):
        shown = line.json("events", "publish", "--team", team, "--kind", "tag.created")
        assert shown["audience"] == {"team": made["id"]}
        assert shown["event"]["workspace"] == {"kind": "team", "team_id": made["id"]}
    for name in (user.email, user.username, str(user.id)):
        shown = line.json("events", "publish", "--user", name, "--kind", "tag.created")
        assert shown["audience"] == {"user": user.id}
    publish = ("events", "publish", "--kind", "tag.created")
    line.refuses("not_found", *publish, "--user", "nobody")
    line.refuses("not_found", *publish, "--team", "nobody")


def test_wrong_usage(line):
    for arguments in (
        ("--kind", "file.created"),
        ("--any", "--user", "root", "--kind", "file.created"),
        ("--any",),
        ("--any", "--kind", "file.exploded"),
        ("--any", "--kind", "file.created", "--file-id", "0"),
        ("--any", "--kind", "file.created", "--file-id", str(2**63)),
        ("--any", "--kind", "file.created", "--delta", "much"),
    ):
        assert line("events", "publish", *arguments).exit_code == 2, arguments


def test_human_text_tells_what_happened(line, user):
    publish = ("events", "publish", "--user", user.username, "--kind", "file.trashed")
    assert line(*publish, "--file-id", "7").text == (
        f"published 2026-03-02T09:30:00Z file.trashed to user {user.id} file_ids=[7]"
    )


def test_an_event_that_no_reader_would_take_is_refused(rt):
    ids = tuple(range(10**6, 10**6 + 10_000))
    event = StorageEvent(Kind.FILE_PURGED, {"kind": "personal"}, rt.clock.now(), file_ids=ids)
    with pytest.raises(EventTooLarge):
        messages.publish(rt, EVERYBODY, event)


def test_without_redis_it_says_so(make_app, tmp_path):
    from app.store import redis as redis_client
    from tests.support.commands import CommandLine

    gone = redis_client.connect(f"unix://{tmp_path}/gone.sock")
    line = CommandLine(make_app(redis=gone))
    line.refuses("internal_server_error", "events", "publish", "--any", "--kind", "tag.created")
    line.refuses("internal_server_error", "events", "tail")


@pytest.fixture
def tailing(rt, line, wait_for):
    """Run `tail` for so many messages; return how to wait for what it printed."""
    with ThreadPoolExecutor(1) as pool:

        def run(*arguments):
            running = pool.submit(line, "events", "tail", *arguments)
            wait_for(lambda: rt.redis.client.pubsub_numsub(EVENTS_CHANNEL)[0][1])
            return lambda: running.result(10)

        yield run


def test_tail_prints_what_is_published_one_object_a_line(rt, app, tailing, line, user):
    finish = tailing("--count", "3", "--json")
    event = StorageEvent(Kind.FOLDER_CREATED, {"kind": "personal"}, rt.clock.now())
    sent = [messages.publish(rt, EVERYBODY, event)]
    rt.redis.client.publish(EVENTS_CHANNEL, "nonsense")
    sent.append(messages.publish(rt, EVERYBODY, event))
    ran = finish()
    assert ran.exit_code == 0
    first, second, third = (json.loads(text) for text in ran.stdout.splitlines())
    assert [first, third] == [json.loads(message.text()) for message in sent]
    assert second == {"malformed": "nonsense"}


def test_tail_as_text_steers_no_terminal(rt, tailing):
    finish = tailing("--count", "2")
    rt.redis.client.publish(EVENTS_CHANNEL, "\x1b[2J")
    event = StorageEvent(Kind.LOCK_CREATED, {"kind": "team", "team_id": 5}, rt.clock.now())
    messages.publish(rt, messages.Audience(team_id=5), event)
    malformed, good = finish().stdout.splitlines()
    assert malformed.startswith("malformed")
    assert malformed.isprintable()
    assert good == "2026-03-02T09:30:00Z lock.created to team 5"


def test_tail_ends_quietly_when_interrupted(rt, line, monkeypatch, wait_for):
    from app.events import cli

    class Interrupted:
        def get(self):
            raise KeyboardInterrupt

    monkeypatch.setattr(cli, "SimpleQueue", Interrupted)
    before = set(threading.enumerate())
    assert line("events", "tail").text == ""
    # Others may end meanwhile.
    wait_for(lambda: set(threading.enumerate()) <= before)
