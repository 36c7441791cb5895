"""What a run of the bed would tell of a service that breaks its promises."""

import time
from types import SimpleNamespace

import pytest
from werkzeug.datastructures import Headers

from app.audit import service as audit
from app.audit.models import Action, EntityType
from deploy.bed.actors import Registrar
from deploy.bed.faults import ClockIsSetBack, PostgresRestarts
from deploy.bed.ledger import Ledger
from deploy.bed.storm import Outcome, Storm
from tests.support.api import Answer
from tests.support.factories import make_user

pytestmark = pytest.mark.postgres

LOGIN = Action.USER_LOGIN


def write(rt, times, user_id=1):
    with rt.transaction() as session:
        for _ in range(times):
            audit.record(rt, session, LOGIN, EntityType.USER, user_id=user_id)


def told(*statuses, user_id=1):
    ledger = Ledger(phase="phase")
    for status in statuses:
        ledger.did(user_id, LOGIN.value, status)
    return ledger


@pytest.mark.parametrize(
    ("statuses", "rows", "kind"),
    [
        ([200, 200], 2, None),
        ([200, 200], 1, "lost"),
        ([200], 2, "doubled"),
        ([200, 401], 1, None),
        ([200, 401], 2, "doubled"),
        ([503], 0, None),
        ([503], 1, None),
        ([503], 2, "doubled"),
        ([200, 503], 0, "lost"),
    ],
)
def test_rows_are_compared_with_answers(rt, statuses, rows, kind):
    write(rt, rows)
    ledger = told(*statuses)
    ledger.compare(rt)
    assert [what.split(":")[1].strip() for what in ledger.broken] == ([kind] if kind else [])


def test_a_change_that_nobody_asked_for_is_found(rt):
    write(rt, 1)
    write(rt, 1, user_id=2)
    ledger = told(200)
    assert ledger.compare(rt) == 1
    assert "doubled" in ledger.broken[0]


def test_accounts_are_compared_with_answers(rt):
    bed = SimpleNamespace(rt=rt, client=lambda: None)
    registrar = Registrar(bed, Ledger(), 1)
    make_user(rt, username="new1x1")
    registrar.made = {"new1x1"}
    registrar.compare()
    assert registrar.ledger.broken == []
    make_user(rt, username="new1x2")
    registrar.made = {"new1x1", "new1x3"}
    registrar.compare()
    assert len(registrar.ledger.broken) == 2  # one was lost, one is nobody's


@pytest.fixture
def storm():
    return Storm(SimpleNamespace(), recovery=5.0)


def judged(storm, fault, *, status, code, late=0.0):
    ended = time.monotonic() - late
    storm._ledger.note(
        ended, Answer("GET", "/", status, Headers(), f'{{"code": "{code}"}}'.encode())
    )
    storm._judge(Outcome(fault.name, ended, ended), fault(None))
    return storm._ledger.broken


def test_a_failure_that_the_fault_explains_is_told_and_no_fault(storm):
    assert judged(storm, PostgresRestarts, status=503, code="database.error") == []


@pytest.mark.parametrize(
    ("fault", "status", "code"),
    [
        (PostgresRestarts, 500, "internal_server_error"),
        (PostgresRestarts, 502, "database.error"),
        (ClockIsSetBack, 503, "database.error"),
    ],
)
def test_any_other_is_one(storm, fault, status, code):
    assert len(judged(storm, fault, status=status, code=code)) == 1


def test_so_is_one_that_comes_too_late(storm):
    [what] = judged(storm, PostgresRestarts, status=503, code="database.error", late=6.0)
    assert "after its end" in what


def test_a_service_that_does_not_come_back_is_found(storm):
    storm._recovery = 0.1
    storm._ledger.answers["5xx"] += 1
    storm._bed.instances = []
    storm._rest(0.0)
    assert storm._ledger.broken == [": nothing went well in a calm"]


def test_a_worker_that_grows_is_found(storm):
    storm._memory = {1: [(t, 40.0 + t) for t in range(60)], 2: [(t, 40.0) for t in range(60)]}
    assert len(storm._growth(60.0)) == 2
    [what] = storm._ledger.broken
    assert "memory grew" in what
