"""A run of the bed detects a service that fails, does not recover, or leaks memory."""

import time
from types import SimpleNamespace

import pytest
from werkzeug.datastructures import Headers

from deploy.bed import storm as storms
from deploy.bed.actors.actor import Actor
from deploy.bed.faults import (
    Calm,
    ClockIsSetBack,
    Fault,
    InstancesAreReplaced,
    PostgresDiskIsFull,
    PostgresRestarts,
    ValkeyHangs,
)
from deploy.bed.storm import Outcome, Storm
from tests.support.api import Answer

NOBODY = SimpleNamespace(client=lambda: SimpleNamespace(close=lambda: None), instances=[])
DATABASE = (503, "database.error")
ANY = (503, "internal_server_error")


class Lucky(Actor):
    """Succeeds at every step."""

    def step(self):
        self.successes += 1


class Unlucky(Actor):
    """Never succeeds."""

    def step(self):
        return


class Passing:
    """Time that passes only during `sleep`; `doing` is what others do meanwhile."""

    def __init__(self):
        self.now = 0.0
        self.doing = lambda: None

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds
        self.doing()


@pytest.fixture
def passing(monkeypatch):
    passing = Passing()
    monkeypatch.setattr(storms, "time", passing)
    return passing


@pytest.fixture
def storm():
    storm = Storm(NOBODY, recovery=5.0)
    yield storm
    for actor in storm._actors:
        actor.stopped.set()


def judged(storm, fault, told=None, *, actor="RegularUser", late=0.0, took=0.0, was_effective=True):
    """Judge one answer that came `late` seconds after a fault; return the violations."""
    ended = time.monotonic() - late
    status, code = told or (200, "success")
    answer = Answer("GET", "/", status, Headers(), f'{{"code": "{code}"}}'.encode())
    storm._ledger.record_answer(time.monotonic() - took, actor, answer)
    happened = fault(None)
    happened.was_effective = was_effective
    storm._judge(Outcome(fault.name, ended, lasted=6.0), happened)
    return storm._ledger.violations


def test_a_failure_that_the_fault_explains_is_told_and_no_fault(storm):
    assert judged(storm, PostgresRestarts, DATABASE) == []


@pytest.mark.parametrize(
    ("fault", "told", "actor"),
    [
        (PostgresRestarts, (500, "internal_server_error"), "RegularUser"),
        (PostgresRestarts, (502, "database.error"), "RegularUser"),
        (PostgresRestarts, (599, "hung up"), "RegularUser"),
        (ClockIsSetBack, DATABASE, "RegularUser"),
        (Calm, ANY, "RegularUser"),
        # Requests that need only the database must go on without Valkey.
        (ValkeyHangs, ANY, "RegularUser"),
        (ValkeyHangs, ANY, "Registrar"),
    ],
)
def test_any_other_is_one(storm, fault, told, actor):
    [what] = judged(storm, fault, told, actor=actor)
    assert "not explained" in what


def test_a_second_factor_needs_valkey(storm):
    assert judged(storm, ValkeyHangs, ANY, actor="MfaUser") == []


def test_a_failure_that_comes_too_late_is_found(storm):
    [what] = judged(storm, PostgresRestarts, DATABASE, late=6.0)
    assert "after its end" in what


def test_an_answer_that_outlasts_the_fault_by_far_is_found(storm):
    assert judged(storm, PostgresRestarts, took=10.0) == []
    [what] = judged(storm, PostgresRestarts, took=12.0)
    assert "an answer took 12.0 s" in what


def test_a_fault_that_nobody_felt_was_none(storm):
    [what] = judged(storm, PostgresRestarts)
    assert "nobody felt" in what


def test_who_waited_for_most_of_it_has_felt_it(storm):
    assert judged(storm, PostgresRestarts, took=4.0) == []


def test_so_was_one_that_could_not_be_brought_about(storm):
    [what] = judged(storm, PostgresDiskIsFull, DATABASE, was_effective=False)
    assert "nobody felt" in what


def test_one_actor_without_a_success_is_found_among_others(storm, passing):
    storm._actors = [Lucky(NOBODY, storm._ledger, name) for name in ("one", "two")]
    passing.doing = lambda: [actor.step() for actor in storm._actors]
    assert storm._rest(0.1) < 0.1
    assert storm._ledger.violations == []
    storm._actors.append(Unlucky(NOBODY, storm._ledger, "three"))
    assert storm._rest(0.1) >= 5.0
    [what] = storm._ledger.violations
    assert "three: nothing went well" in what


def test_who_never_had_a_success_and_who_fails_at_the_end_are_found(storm):
    storm._actors = [Unlucky(NOBODY, storm._ledger, "one")]
    storm._actors[0].start()
    storm._ledger.record_answer(
        time.monotonic(), "RegularUser", Answer("GET", "/", 503, Headers(), b'{"code":""}')
    )
    storm._end()
    [nothing, late] = storm._ledger.violations
    assert "one: nothing went well" in nothing
    assert "not explained" in late


def test_a_fault_is_undone_though_it_could_not_begin(storm):
    undone = []

    class Broken(Fault):
        name = "broken"

        def begin(self):
            raise ZeroDivisionError

        def end(self):
            undone.append(True)

    with pytest.raises(ZeroDivisionError):
        storm._run_fault(Broken(NOBODY), 0.0, 0.0, verbose=False)
    assert undone == [True]


@pytest.fixture
def quiet(monkeypatch, passing):
    """A bed on which nothing happens, and the lengths of the calms on it."""
    calms = []
    monkeypatch.setattr(storms, "create_actors", lambda *_: [])
    monkeypatch.setattr(Storm, "_report", lambda *_, **__: None)

    def rest(_, seconds):
        calms.append(seconds)
        passing.sleep(seconds)
        return 0.0

    monkeypatch.setattr(Storm, "_rest", rest)
    monkeypatch.setattr(Storm, "_run_fault", lambda *_, **__: None)
    bed = SimpleNamespace(disks_are_small=False, logs=list, instances=[])
    return bed, calms


def test_where_nothing_is_left_to_break_it_waits(quiet):
    bed, calms = quiet
    Storm(bed, recovery=5.0, faults=[InstancesAreReplaced]).run(4.0, hold=0.0, rest=1.0)
    assert calms == [1.0] * 4


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        ("WARNING the database is away\n", False),
        ("ERROR the files of 1/2 are missing\n", True),
        ("CRITICAL WORKER TIMEOUT (pid:1)\n", True),
        ("Traceback (most recent call last)\n", True),
    ],
)
def test_logs_are_searched_for_what_was_written_since(storm, text, is_found):
    before = "Traceback of another test\n"
    storm._bed = SimpleNamespace(logs=lambda: [("one", before + text)])
    storm._check_logs({"one": len(before)})
    assert bool(storm._ledger.violations) == is_found


def test_a_worker_that_grows_is_found(storm):
    storm._memory = {1: [(t, 40.0 + t) for t in range(90)], 2: [(t, 40.0) for t in range(90)]}
    assert len(storm._growth(90.0)) == 2
    [what] = storm._ledger.violations
    assert "memory grew" in what


def test_a_worker_that_has_just_begun_may_grow(storm):
    storm._memory = {1: [(t, 16.0 + t) for t in range(30)]}
    assert storm._growth(30.0) == []
    assert storm._ledger.violations == []
