"""What a published message must be like, and what a page receives."""

import json
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from app.events.messages import (
    EVERYBODY,
    Audience,
    Kind,
    Message,
    MessageMalformed,
    StorageEvent,
    parse,
    sync_required,
)
from tests.support.storage_events import SCHEMA
from tests.support.strategies import CHARACTERS

VALIDATOR = Draft202012Validator(SCHEMA)
NOW = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
GOOD = SCHEMA["examples"][0]


def changed(**event):
    """Return the example with other members of its event; ... leaves one out."""
    merged = {**GOOD["event"], **event}
    kept = {name: value for name, value in merged.items() if value is not ...}
    return {"audience": GOOD["audience"], "event": kept}


def payload(wire):
    return parse(json.dumps(wire)).event.wire()


def test_a_good_message_reaches_the_page_as_it_is():
    for example in SCHEMA["examples"]:
        VALIDATOR.validate(example)
        assert payload(example) == example["event"]
        assert json.loads(parse(json.dumps(example)).text()) == example


def test_a_frame_is_one_data_line():
    frame = parse(json.dumps(GOOD)).event.frame()
    assert frame.startswith(b'data: {"kind":"file.created","workspace":{"kind":"personal"},')
    assert frame.endswith(b"}\n\n")
    assert frame.count(b"\n") == 2
    assert json.loads(frame.removeprefix(b"data: ")) == GOOD["event"]


def test_ids_are_sorted_and_each_told_once():
    shown = payload(changed(file_ids=[3, 1, 3, 2], folder_ids=[2, 2], affected_parent_ids=[5, 4]))
    assert shown["file_ids"] == [1, 2, 3]
    assert shown["folder_ids"] == [2]
    assert shown["affected_parent_ids"] == [4, 5]


def test_times_are_told_in_utc():
    assert payload(changed(at="2026-03-02T11:30:00.5+02:00"))["at"] == "2026-03-02T09:30:00.500000Z"
    assert payload(changed(at="2026-03-02t09:30:00.123456789z"))["at"].startswith("2026-03-02T09")


def test_what_is_not_known_does_not_reach_the_page():
    assert set(payload(changed(secret="x", kind="file.purged"))) == set(GOOD["event"])


def test_the_event_that_asks_for_everything_anew():
    event = sync_required(NOW)
    assert event.wire() == {
        "kind": "sync.required",
        "workspace": None,
        "file_ids": [],
        "folder_ids": [],
        "affected_parent_ids": [],
        "root_affected": False,
        "affects_quota": True,
        "storage_delta": None,
        "at": "2026-03-02T09:30:00Z",
    }
    for audience in (EVERYBODY, Audience(user_id=7), Audience(team_id=3)):
        message = Message(audience, event)
        VALIDATOR.validate(json.loads(message.text()))
        assert parse(message.text()) == message


def test_every_kind_is_known_to_the_schema():
    known = SCHEMA["properties"]["event"]["properties"]["kind"]["enum"]
    assert known == [kind.value for kind in Kind]


def is_malformed(text):
    try:
        parse(text)
    except MessageMalformed:
        return True
    return False


def test_nonsense_is_malformed():
    for text in (
        "",
        "nonsense",
        "null",
        "[]",
        "1",
        '"any"',
        "{}",
        "[" * 100_000,
        "9" * 5000,
        '{"audience": "any"}',
        '{"audience": "any", "event": null}',
        '{"audience": "any", "event": []}',
        "\N{REPLACEMENT CHARACTER}\0",
    ):
        assert is_malformed(text), text[:50]


def test_an_unknown_audience_is_malformed():
    for audience in (
        *(None, "all", 7, [], {}, ["any"]),
        *({"user": wrong} for wrong in (None, "7", True, 1.5, 2**63)),
        *({"user": 1, "team": 1}, {"group": 1}, {"User": 1}),
    ):
        wire = {"audience": audience, "event": GOOD["event"]}
        assert is_malformed(json.dumps(wire)), audience
        assert not VALIDATOR.is_valid(wire), audience


def test_every_member_is_needed():
    for name in GOOD["event"]:
        wire = changed(**{name: ...})
        assert is_malformed(json.dumps(wire)), name
        assert not VALIDATOR.is_valid(wire), name


def test_a_wrong_member_is_malformed():
    for event in (
        {"kind": "file.exploded"},
        {"kind": None},
        {"kind": ["file.created"]},
        {"workspace": None},
        {"workspace": "personal"},
        {"workspace": {"kind": "team"}},
        {"workspace": {"kind": "team", "team_id": "3"}},
        {"workspace": {"kind": "shared"}},
        {"file_ids": None},
        {"file_ids": "1"},
        {"file_ids": [None]},
        {"folder_ids": [True]},
        {"affected_parent_ids": [2**63]},
        {"root_affected": 1},
        {"affects_quota": None},
        {"storage_delta": "1"},
        {"storage_delta": False},
        {"at": None},
        {"at": 5},
        {"at": "2026-03-02"},
        {"at": "2026-03-02T09:30:00"},
        {"at": "yesterday"},
    ):
        wire = changed(**event)
        assert is_malformed(json.dumps(wire)), event
        assert not VALIDATOR.is_valid(wire), event


def test_a_time_that_never_was_is_malformed():
    for at in ("2026-02-30T09:30:00Z", "2026-03-02T25:00:00Z", "٢٠٢٦-03-02T09:30:00Z"):
        assert is_malformed(json.dumps(changed(at=at))), at


IDS = st.integers(-(2**63), 2**63 - 1)
ODD = st.one_of(
    st.none(), st.booleans(), st.text(CHARACTERS, max_size=3), st.just([]), st.just({}), IDS
)
MEMBERS = {
    "kind": st.sampled_from([kind.value for kind in Kind]),
    "workspace": st.one_of(
        st.none(),
        st.just({"kind": "personal"}),
        st.fixed_dictionaries({"kind": st.just("team"), "team_id": IDS}),
    ),
    "file_ids": st.lists(IDS, max_size=3),
    "folder_ids": st.lists(IDS, max_size=3),
    "affected_parent_ids": st.lists(IDS, max_size=3),
    "root_affected": st.booleans(),
    "affects_quota": st.booleans(),
    "storage_delta": st.none() | IDS,
    "at": st.just("2026-03-02T09:30:00Z"),
}
EVENTS = st.fixed_dictionaries({n: st.one_of(good, good, good, ODD) for n, good in MEMBERS.items()})
AUDIENCES = st.one_of(
    st.just("any"),
    st.fixed_dictionaries({"user": IDS}),
    st.fixed_dictionaries({"team": IDS}),
    ODD,
)


@given(st.fixed_dictionaries({"audience": AUDIENCES, "event": EVENTS}))
def test_the_schema_says_what_is_taken(wire):
    try:
        message = parse(json.dumps(wire))
    except MessageMalformed:
        assert not VALIDATOR.is_valid(wire)
    else:
        VALIDATOR.validate(wire)
        VALIDATOR.validate(json.loads(message.text()))
        assert parse(message.text()).event.frame() == message.event.frame()


@given(st.text(CHARACTERS, max_size=50))
def test_any_text_is_read_or_refused(text):
    assert is_malformed(text)


def test_an_event_says_by_default_that_little_changed():
    event = StorageEvent(Kind.FILE_CREATED, {"kind": "personal"}, NOW)
    assert event.wire()["affects_quota"] is False
    assert event.wire()["storage_delta"] is None
