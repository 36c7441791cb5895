"""Schemathesis over the API description, once as an administrator; fuzz.py is the long form."""

import json

import pytest
from schemathesis.checks import CHECKS

from tests.security import fuzz
from tests.support.smtp import RecordingSmtpServer


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
    assert described - summary.operations == {f"GET {fuzz.OPENAPI}"}
    assert summary.phases == set(phases)
    assert summary.checks == set(CHECKS.get_all_names())
    assert summary.cases >= fewest


def test_an_administrator_finds_what_the_description_says(service):
    summary = fuzz.run(service, "admin", examples=1, phases=("fuzzing",))
    insist(summary, service, fewest=150, phases=("fuzzing",))
    assert summary.statuses[200] >= 20, str(summary)  # signed in


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
    assert summary.statuses[200] > 100


@pytest.mark.soak
@pytest.mark.parametrize(
    ("principal", "usual"), [("script", 200), ("limited", 403), ("admin", 200)]
)
def test_others_find_what_the_description_says(service, principal, usual):
    phases = ("fuzzing", "stateful")
    summary = fuzz.run(service, principal, examples=3, phases=phases)
    insist(summary, service, fewest=150, phases=phases)
    assert summary.statuses[usual] >= 20, str(summary)  # they are signed in
