"""The stream in the API description is what a page receives, as integrators are told it."""

import json

import pytest
from jsonschema import Draft202012Validator, FormatChecker
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from app.events.messages import Kind, parse, sync_required
from tests.support.openapi import DOCUMENT, NAME
from tests.support.storage_events import SCHEMA

PUBLISHED = SCHEMA["properties"]["event"]
STREAM = "/api/v1/auth/events/storage"


@pytest.fixture
def document(app):
    return app.test_client().get(DOCUMENT).get_json()


@pytest.fixture
def complaints(document):
    """Return a function that judges an event by the description."""
    registry = Registry().with_resource(NAME, DRAFT202012.create_resource(document))
    schema = {"$ref": f"{NAME}#/components/schemas/StorageEvent"}
    judge = Draft202012Validator(schema, registry=registry, format_checker=FormatChecker())
    return lambda event: [error.message for error in judge.iter_errors(event)]


def test_the_stream_is_described_with_what_its_events_are(document):
    answer = document["paths"][STREAM]["get"]["responses"]["200"]
    [(media_type, stream)] = answer["content"].items()
    assert media_type == "text/event-stream"
    assert stream["schema"]["type"] == "string"
    assert stream["x-itemSchema"] == {"$ref": "#/components/schemas/StorageEvent"}


def test_an_event_has_the_members_and_kinds_that_are_published(document):
    event = document["components"]["schemas"]["StorageEvent"]
    assert event["properties"].keys() == PUBLISHED["properties"].keys()
    assert sorted(event["required"]) == sorted(PUBLISHED["required"])
    assert event["properties"]["kind"]["enum"] == PUBLISHED["properties"]["kind"]["enum"]
    assert set(event["properties"]["kind"]["enum"]) == {kind.value for kind in Kind}


def test_what_a_page_receives_fits(complaints, clock):
    received = [parse(json.dumps(example)).event for example in SCHEMA["examples"]]
    for event in [*received, sync_required(clock.now())]:
        assert complaints(event.wire()) == []


def test_what_no_page_receives_does_not(complaints):
    for other in (
        {"kind": "file.burnt"},
        {"workspace": {"kind": "team"}},
        {"workspace": {"kind": "shared"}},
        {"file_ids": ["1"]},
        {"storage_delta": "1"},
        {"at": "yesterday"},
    ):
        assert complaints(SCHEMA["examples"][0]["event"] | other), other


def test_the_example_is_a_stream_that_could_be_received(document, complaints):
    stream = document["paths"][STREAM]["get"]["responses"]["200"]["content"]["text/event-stream"]
    comment, event, rest = stream["examples"]["example"]["value"].split("\n\n")
    assert (comment, rest) == (": keep-alive", "")
    assert complaints(json.loads(event.removeprefix("data: "))) == []
