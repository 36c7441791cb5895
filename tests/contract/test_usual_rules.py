"""The API description keeps the rules that redocly recommends, and is as strict as the service."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from tests.support import npm
from tests.support.openapi import DOCUMENT

FOLDER = Path(__file__).with_name("redocly")
# Neither usage data nor a look for newer versions.
QUIET = {"REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true"}
# Redirects have no 2xx, health and metrics no 4xx; there is no licence; `ErrorCode` is for clients;
# `/users/invitations/{id}/revoke` is not `/users/{id}/sessions/revoke`, since ids are numbers.
EXPECTED = {
    "info-license",
    "no-ambiguous-paths",
    "no-unused-components",
    "operation-2xx-response",
    "operation-4xx-response",
}


@pytest.fixture
def document(app):
    return app.test_client().get(DOCUMENT).json


def test_redocly_finds_no_error(document, tmp_path):
    try:
        npm.install(FOLDER)
    except npm.Missing as reason:
        pytest.skip(f"no redocly: {reason}")
    (tmp_path / "openapi.json").write_text(json.dumps(document))
    linted = subprocess.run(
        [
            *("node", FOLDER / "node_modules/@redocly/cli/bin/cli.js"),
            *("lint", "--extends=recommended", "--format=json", "openapi.json"),
        ],
        cwd=tmp_path,
        env={**os.environ, **QUIET},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    problems = json.loads(linted.stdout)["problems"]
    assert [problem for problem in problems if problem["severity"] == "error"] == []
    assert {problem["ruleId"] for problem in problems} <= EXPECTED


def member(document, body, name):
    """Return a validator of a body's member."""
    schema = document["components"]["schemas"][body]["properties"][name]
    return Draft202012Validator(schema)


@pytest.mark.parametrize(
    ("typed", "is_good"),
    [
        ("ada@example.com", True),
        ("a..b@example.com", True),
        ("ada@b\N{LATIN SMALL LETTER U WITH DIAERESIS}cher.example", True),
        ("ada@xn--ls8h.example", True),
        ("ada", False),
        ("ada@localhost", False),
        ("ada lovelace@example.com", False),
        ("\N{LATIN SMALL LETTER U WITH DIAERESIS}@example.com", False),
        ("ada@example..com", False),
        ("ada@-example.com", False),
        ("ada@exa_mple.com", False),
        (f"{'a' * 65}@example.com", False),
    ],
)
def test_an_address_is_described_as_it_is_taken(document, api, typed, is_good):
    assert member(document, "NewAccountBody", "email").is_valid(typed) is is_good
    body = {"username": "ada", "email": typed, "password": "a rather long password"}
    assert (api.post("/auth/setup", body).status == 201) is is_good


@pytest.mark.parametrize(
    ("name", "typed"),
    [
        ("username", "a"),
        ("username", "a" * 65),
        ("username", "ada lovelace"),
        ("password", "short"),
        ("password", "a" * 129),
    ],
)
def test_what_a_new_account_is_refused_for_is_described(document, api, name, typed):
    assert not member(document, "NewAccountBody", name).is_valid(typed)
    good = {"username": "ada", "email": "a@example.com", "password": "a rather long password"}
    assert api.post("/auth/setup", {**good, name: typed}).status == 400


@pytest.mark.parametrize(
    ("fields", "is_good"),
    [("profile", True), ("quota,session", True), ("", True), ("all", False), ("quota;x", False)],
)
def test_field_groups_are_described_as_they_are_taken(document, signed_in, fields, is_good):
    [parameter] = document["paths"]["/api/v1/auth/me"]["get"]["parameters"]
    assert Draft202012Validator(parameter["schema"]).is_valid(fields) is is_good
    answer = signed_in.get(f"/auth/me?fields={fields}")
    assert (answer.status == 200) is is_good


def test_only_sizes_that_there_are_are_described(document):
    [size] = document["paths"]["/api/v1/auth/profile/avatar/{size}"]["get"]["parameters"]
    assert size["schema"]["enum"] == [512, 1024]


@pytest.mark.parametrize("value", ["dark", "violet"])
def test_choices_of_preferences_are_described(document, signed_in, value):
    is_good = member(document, "UpdatePreferencesBody", "theme_mode").is_valid(value)
    answer = signed_in.patch("/auth/preferences", {"theme_mode": value})
    assert (answer.status == 200) is is_good
