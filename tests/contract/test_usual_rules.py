"""The API description keeps the rules that redocly recommends, and is as strict as the service."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from app.core.errors import AppError
from app.crypto.passwords import is_acceptable
from app.profile.service import selected_groups
from app.users import identifiers
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


def is_taken(rule, value):
    try:
        return rule(value) is not False
    except AppError:
        return False


def test_an_address_is_described_as_it_is_taken(document):
    described = member(document, "NewAccountBody", "email")
    for typed, is_good in (
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
    ):
        assert described.is_valid(typed) is is_taken(identifiers.email, typed) is is_good, typed


def test_what_a_new_account_is_refused_for_is_described(document):
    for name, rule, values in (
        ("username", identifiers.username, ["a", "a" * 65, "ada lovelace"]),
        ("password", is_acceptable, ["short", "a" * 129]),
    ):
        described = member(document, "NewAccountBody", name)
        for typed in values:
            assert described.is_valid(typed) is is_taken(rule, typed) is False, typed


def test_field_groups_are_described_as_they_are_taken(document):
    [parameter] = document["paths"]["/api/v1/auth/me"]["get"]["parameters"]
    described = Draft202012Validator(parameter["schema"])
    for fields, is_good in (
        ("profile", True),
        ("quota,session", True),
        ("", True),
        ("all", False),
        ("quota;x", False),
    ):
        assert described.is_valid(fields) is is_taken(selected_groups, fields) is is_good, fields


def test_only_sizes_that_there_are_are_described(document):
    [size] = document["paths"]["/api/v1/auth/profile/avatar/{size}"]["get"]["parameters"]
    assert size["schema"]["enum"] == [512, 1024]


def test_choices_of_preferences_are_described(document, signed_in):
    described = member(document, "UpdatePreferencesBody", "theme_mode")
    for value, is_good in (("dark", True), ("violet", False)):
        answer = signed_in.patch("/auth/preferences", {"theme_mode": value})
        assert described.is_valid(value) is (answer.status == 200) is is_good, value
