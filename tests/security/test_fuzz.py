"""Schemathesis over the API description, once as an administrator; fuzz.py is the long form."""

import json

import pytest
from flask import Flask, jsonify
from schemathesis.checks import CHECKS
from werkzeug.routing import Map

from tests.security import fuzz
from tests.support.smtp import RecordingSmtpServer

# Takes nothing, and comes when every POST has been tried: whoever was signed in then still is.
LATE = "GET /api/v1/auth/mfa"


@pytest.fixture(scope="module")
def service():
    with fuzz.private_service() as app:
        yield app


def insist(summary, app, *, fewest, phases):
    """Insist that a run found nothing, and left out no operation, phase or check."""
    assert not summary.failures, str(summary)
    paths = json.loads(app.test_client().get(fuzz.OPENAPI).data)["paths"]
    described = {f"{method.upper()} {path}" for path, its in paths.items() for method in its}
    # Schemathesis leaves out the route that it read the description from.
    assert described - summary.answered.keys() == {f"GET {fuzz.OPENAPI}"}
    assert summary.phases == set(phases)
    assert summary.checks == set(CHECKS.get_all_names())
    assert summary.cases >= fewest


def test_an_administrator_finds_what_the_description_says(service):
    summary = fuzz.run(service, "admin", examples=1, phases=("fuzzing",))
    insist(summary, service, fewest=150, phases=("fuzzing",))
    assert summary.answered[LATE] >= {200}


@pytest.mark.soak
def test_strangers_find_what_the_description_says(service):
    phases = ("examples", "coverage")
    summary = fuzz.run(service, "anonymous", examples=1, phases=phases)
    insist(summary, service, fewest=1000, phases=phases)
    assert summary.statuses[401] > 100


@pytest.mark.soak
@pytest.mark.postgres
def test_a_page_finds_what_the_description_says(make_app, rt):
    app = make_app(**fuzz.UNLIMITED)
    with RecordingSmtpServer() as smtp:
        fuzz.prepare(rt, smtp.port)
        phases = ("coverage", "fuzzing")
        summary = fuzz.run(app, "page", examples=2, phases=phases)
    insist(summary, app, fewest=1000, phases=phases)
    assert summary.answered[LATE] >= {200}


@pytest.mark.soak
@pytest.mark.parametrize(
    ("principal", "usual"), [("script", 200), ("limited", 403), ("admin", 200)]
)
def test_others_find_what_the_description_says(service, principal, usual):
    phases = ("fuzzing", "stateful")
    summary = fuzz.run(service, principal, examples=3, phases=phases)
    insist(summary, service, fewest=150, phases=phases)
    assert summary.answered[LATE] >= {usual}


# --- it would tell -----------------------------------------------------------------------------


class Apart(Flask):
    """An application that does not share the routes of the others."""

    url_map_class = Map


def faulty(status, body):
    """Return an application with one operation that answers so, and promises something else."""
    app = Apart("faulty")
    text = {"type": "object", "required": ["msg"], "properties": {"msg": {"type": "string"}}}
    answers = {"200": {"description": "OK", "content": {"application/json": {"schema": text}}}}
    name = {"in": "query", "name": "name", "schema": {"type": "string"}}
    operation = {"parameters": [name], "responses": answers}
    document = {
        "openapi": "3.1.0",
        "info": {"title": "faulty", "version": "1"},
        "paths": {"/faulty": {"get": operation}},
    }
    app.add_url_rule(fuzz.OPENAPI, "document", lambda: jsonify(document))
    app.add_url_rule("/faulty", "faulty", lambda: (jsonify(body), status))
    return app


@pytest.mark.parametrize(
    ("status", "body", "check"),
    [
        (200, {"msg": 1}, "response_schema_conformance"),
        (201, {"msg": "undescribed"}, "status_code_conformance"),
        (400, {"msg": "invalid query: name: unknown"}, "positive_data_acceptance"),
        (500, {"msg": "broken"}, "not_a_server_error"),
    ],
)
def test_a_service_that_breaks_its_promise_is_found_out(status, body, check):
    summary = fuzz.run(faulty(status, body), "anonymous", examples=3, phases=("fuzzing",))
    assert any(check in kind for kind in summary.failures), str(summary)


def test_a_refusal_of_what_is_asked_for_is_no_fault_of_form():
    app = faulty(400, {"msg": "This name is taken."})
    summary = fuzz.run(app, "anonymous", examples=3, phases=("fuzzing",))
    assert not [kind for kind in summary.failures if "positive_data_acceptance" in kind]
    assert any("status_code_conformance" in kind for kind in summary.failures)
