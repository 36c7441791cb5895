"""The bench's own rules: what its tables say, and that one failure takes nothing along."""

import json
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.metadata import packages_distributions

import pytest

from bench import __main__ as command
from bench import summary
from bench.client import BodyChain, _is_whole_in_chunks
from bench.lab import Group, Lab, Options, Scenario
from bench.least import make_app
from bench.load import Run, render
from bench.report import Report, Row, Target
from bench.scenarios.least import SCENARIOS as LEAST
from bench.servers import Bare
from tests.support.servers import ROOT

WITHOUT = """
import runpy, sys
sys.modules.update(dict.fromkeys(sys.argv[2:]))
runpy.run_module(sys.argv[1], run_name="__main__")
"""


def _run(*, foreign_cores: float = 0.0, failed: int = 0) -> Run:
    return Run(100, 100, 1.0, failed, "", {"x": [1.0]}, foreign_cores=foreign_cores)


def _rows(lab: Lab, database: str, scenario: Scenario) -> Iterator[Row]:
    for clients, value in (1, 0.6), (16, 0.4):
        run = _run(foreign_cores=0.5 if clients == 16 else 0.0)
        yield Row("me", database, clients, [run], [scenario.figure("rate", value)])
    if database == "postgres":
        raise KeyError("data")


ME = Scenario("me", "", _rows, {"rate": Target(at_least=0.5), "p99": Target(at_most=3)})
GROUPS = (Group("Sessions", (ME,)),)


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch) -> Report:
    report = Report("machine", "none", 0.15, ("sqlite", "postgres"))
    lab = Lab(Options(1, (1,), 1, 0.15, 0, 0), stack=None)
    monkeypatch.setattr(command, "log_row", lambda row: None)
    for database in report.databases:
        command._measure_one(lab, database, ME, report)
    return report


@pytest.mark.parametrize(
    ("line", "seconds"),
    [("", 10), ("--quick", 1), ("--wait 0", 0), ("--quick --wait 0", 0), ("--quick --wait 3", 3)],
)
def test_it_waits_as_long_for_a_quiet_machine_as_it_is_told(monkeypatch, line, seconds):
    measured_with = []
    monkeypatch.setattr(command, "Lab", lambda options, stack: measured_with.append(options))
    arguments = command._parser().parse_args(line.split())
    command._measure(arguments, [], Report("machine", "none", 0.15, ("sqlite",)))
    assert {options.wait for options in measured_with} == {seconds}


def test_a_scenario_that_fails_keeps_its_rows_and_names_the_reason(report):
    assert [row.database for row in report.rows] == ["sqlite"] * 2 + ["postgres"] * 2
    assert report.errors == ["me on postgres: 'data'"]
    assert "- not measured: me on postgres: 'data'" in report.markdown()


def test_the_summary_marks_what_is_missed_noisy_and_not_measured(report):
    text = summary.markdown(GROUPS, [ME], report)
    values = "0.60 / **0.40**\\*"
    assert f"| Sessions | me: rate, 1 / 16 clients | ≥ 0.5 | {values} | {values} | **no** |" in text
    assert "| Sessions | me: p99 | ≤ 3 | not measured | not measured | not measured |" in text
    assert "| Sessions | 2 | 0 | 1 | 1 | 1 |" in text


def test_wrong_answers_make_a_figure_worthless():
    report = Report("machine", "none", 0.15, ("sqlite",))
    row = Row("me", "sqlite", 16, [_run(failed=1)], [ME.figure("rate", 0.9)], part_of="me")
    report.rows.append(row)
    text = summary.markdown(GROUPS, [ME], report)
    assert "| Sessions | me: rate | ≥ 0.5 | **worthless** | - | **no** |" in text


def test_a_chain_carries_the_newest_token_of_the_bodies():
    template = {
        "label": "refresh",
        "raw": render("POST", "/refresh", {"token": "@@TOKEN@@"}),
        "status": 200,
        "expect": "",
    }
    chain = BodyChain(template, {"token": "old"})
    assert chain.learn(b'HTTP/1.1 200 OK\r\n\r\n{"token": "a longer one"}', 15)
    head, _, body = chain.render().raw.partition(b"\r\n\r\n")
    assert json.loads(body) == {"token": "a longer one"}
    assert f"Content-Length: {len(body)}".encode() in head
    assert not chain.learn(b"HTTP/1.1 200 OK\r\n\r\n{}", 15)


def test_an_answer_in_chunks_is_whole_with_its_last_chunk():
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked"
    begun = head + b"\r\n\r\n2\r\n{}\r\n"
    assert not _is_whole_in_chunks(begun, len(head))
    assert _is_whole_in_chunks(begun + b"0\r\n\r\n", len(head))


def pinned(file):
    names = re.findall(r"(?m)^([A-Za-z0-9._-]+)==", (ROOT / file).read_text())
    return {re.sub(r"[-_.]+", "-", name).lower() for name in names}


def test_the_provider_of_the_readme_needs_no_package_of_the_suite():
    own = pinned("requirements-dev.txt") - pinned("requirements.txt")
    made_by = packages_distributions()
    missing = [
        package
        for package, makers in made_by.items()
        if own.issuperset(re.sub(r"[-_.]+", "-", maker).lower() for maker in makers)
    ]
    assert "psutil" in missing
    command = [sys.executable, "-c", WITHOUT, "bench.identity_provider", *missing]
    done = subprocess.run(command, cwd=ROOT, input="", capture_output=True, text=True, timeout=30)
    assert re.fullmatch(r"http://127\.0\.0\.1:[0-9]+\n", done.stdout), done.stderr


@pytest.mark.live
def test_what_the_rest_is_compared_with_runs_under_the_service_s_settings():
    with ExitStack() as stack:
        bare = Bare(stack)
        with urllib.request.urlopen(f"http://127.0.0.1:{bare.port}/") as answer:
            assert json.load(answer)["data"] == {"hello": "bench"}
        assert len(bare.workers()) == 2


def test_the_least_opens_no_file_before_its_workers_are_forked(tmp_path, monkeypatch):
    """SQLite's connections are good for nothing behind a fork."""
    monkeypatch.setenv("LEAST_DATABASE_URL", f"sqlite:///{tmp_path / 'least.db'}")
    monkeypatch.setenv("LEAST_REDIS_URL", f"unix://{tmp_path / 'nobody.sock'}")
    make_app()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.live
@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_the_least_that_requests_cost_is_measured_by_answers_that_are_right(database):
    options = Options(0.2, (2,), 1, noise=1, wait=0, scale=0)
    with ExitStack() as stack:
        lab = Lab(options, stack)
        rows = [row for scenario in LEAST for row in scenario.measure(lab, database, scenario)]
    measured = [row for row in rows if row.database == database]
    assert [row.scenario for row in measured] == [scenario.name for scenario in LEAST]
    assert all(run.sent and not run.failed for row in measured for run in row.runs)
