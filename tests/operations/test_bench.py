"""The bench's own rules: what its table says, and that one failure takes nothing along."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from importlib.metadata import packages_distributions
from types import SimpleNamespace
from urllib.request import urlopen

import pytest

from bench import plots
from bench.__main__ import measure_one
from bench.client import WrongAnswer, _answer_from, _renew, _with
from bench.habits import Act, Habits, year_of
from bench.lab import Lab
from bench.load import Job, Request, Run, render
from bench.peers.jobs import SESSIONS_LISTED
from bench.report import Figure, Report, Row
from bench.scenarios import Scenario, year
from tests.support.live import free_port
from tests.support.servers import ROOT

WITHOUT = "import sys; sys.modules.update(dict.fromkeys(sys.argv[1:])); "


def _half_measured(lab: Lab) -> Iterator[Row]:
    noisy = Run(100, 1.0, 0, "", [1.0], foreign_cores=0.5)
    yield Row("me", lab.database, [Figure("rate", 3, "/s", at_least=2)])
    yield Row("me", lab.database, [Figure("p99", 3, " ms", at_most=2)], [noisy])
    raise KeyError("data")


def test_a_scenario_that_fails_keeps_its_rows_and_names_the_reason():
    report = Report("machine", "none", 0.15)
    lab = SimpleNamespace(database="sqlite")
    measure_one(lab, Scenario("me", "", _half_measured), report)
    text = report.markdown()
    assert "| me | sqlite | rate | 3.00/s | ≥ 2/s | yes |" in text
    assert "| me | sqlite | p99 | 3.00 ms\\* | ≤ 2 ms | **no** |" in text
    assert "- not measured: me on sqlite: 'data'" in text


@pytest.mark.soak
def test_what_a_request_costs_is_said_for_each_kind_with_who_spends_it():
    command = [sys.executable, "-m", "bench.cost", "--requests", "2"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    kinds = re.findall(r"^(.+), sqlite: (\d+\.\d+) ms$", said, re.MULTILINE)
    assert [kind for kind, _ in kinds] == [
        "who am I",
        f"session list, of {SESSIONS_LISTED}",
        "refresh",
        "login without its hash",
    ]
    for kind in said.strip().split("\n\n"):
        assert "app" in re.findall(r"%  (\w+)$", kind, re.MULTILINE)


def test_a_chain_carries_the_newest_token_of_the_bodies():
    template = Request(render("POST", "/refresh", {"token": "@@TOKEN@@"}))
    tokens = {"token": "old"}
    _renew(tokens, b'{"token": "a longer one"}')
    head, _, body = _with(Job(1, 1, 1, template=template, chained_by="body"), tokens).raw.partition(
        "\r\n\r\n"
    )
    assert body == '{"token": "a longer one"}'
    assert f"Content-Length: {len(body)}" in head


def test_a_refresh_that_renews_no_token_is_a_wrong_answer():
    with pytest.raises(WrongAnswer):
        _renew({"token": "old"}, b"{}")


def test_an_answer_in_chunks_is_whole_with_its_last_chunk():
    parts = [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n", b"0\r\n", b"\r\n"]
    arriving = iter(parts)
    assert _answer_from(lambda _: next(arriving))[1] == b"2\r\n{}\r\n0\r\n\r\n"
    assert next(arriving, None) is None


def _drawn(folder, *rows):
    plots.write(Report("machine", "none", 0.15, [*rows]), folder)
    return {file.name: file.read_text() for file in folder.iterdir()}


def test_the_same_figures_give_the_same_small_plots_without_scripts_or_references(tmp_path):
    rates = [Figure("Gatehouse", 2000, "/s"), Figure("Gatehouse, p99", 9, " ms")]
    tails = [Figure("alone, p99", 10, " ms"), Figure("during logins, p99", 20, " ms")]
    event = [Figure(f"an event to all, {name}", 30, " ms") for name in ("p50", "p99")]
    rows = [
        *(Row("me", database, rates) for database in ("sqlite", "postgres")),
        Row("me-during-logins", "sqlite", tails),
        Row("10,000 streams", "postgres", event),
        Row("growth: me", "postgres", [Figure("cost 1,000,000 : 1,000", 1.1)]),
    ]
    drawn = _drawn(tmp_path, *rows)
    names = ("rates-sqlite", "rates-postgres", "logins", "streams", "growth")
    assert drawn.keys() == {f"{name}.svg" for name in names}
    assert _drawn(tmp_path, *rows) == drawn
    for text in drawn.values():
        assert len(text) < 15_000
        assert not re.search("<script|href|@import|url\\(|20\\d\\d-", text)
    assert "2,000/s" in drawn["rates-sqlite.svg"]
    assert "99 % of 10,000 streams" in drawn["streams.svg"]


def test_what_was_not_measured_has_no_plot(tmp_path):
    row = Row("sessions", "sqlite", [Figure("Gatehouse", 2000, "/s")])
    assert _drawn(tmp_path, row).keys() == {"rates-sqlite.svg"}


def _acts(**cost):
    nothing = dict.fromkeys(year.TABLES, 0.0)
    usual = {"rows": nothing | {"audit_log": 2.0}, "wal_bytes": 100.0, "writes": 1.0, "cpu_ms": 4.0}
    return {name: Act(**(usual | cost)) for name in Habits().acts_a_day()}


def test_a_year_keeps_what_is_not_too_old_and_grows_with_its_accounts():
    often = sum(Habits().acts_a_day().values())
    small, large = (year_of(number, Habits(), _acts()) for number in (1000, 100_000))
    assert small.rows["audit_log"] == pytest.approx(1000 * often * 2 * 90)
    assert small.audit_rows == pytest.approx(1000 * often * 2 * 365)
    assert small.wal_bytes == pytest.approx(1000 * often * 100 * 365)
    assert small.deletions_an_hour == pytest.approx(1000 * often * 2 / 24)
    assert small.peak_writes == pytest.approx(1000 * often / 10 / 3600)
    assert small.peak_cores == pytest.approx(small.peak_writes * 0.004)
    for table, rows in small.rows.items():
        assert large.rows[table] == pytest.approx(100 * rows)


def test_a_year_takes_the_life_of_things_from_the_service(monkeypatch):
    before = year_of(1000, Habits(), _acts())
    monkeypatch.setattr("bench.habits.RETENTION_DAYS", 30)
    after = year_of(1000, Habits(), _acts())
    assert after.rows["audit_log"] == pytest.approx(before.rows["audit_log"] / 3)
    assert after.audit_rows == before.audit_rows


def test_an_act_that_nobody_measured_is_not_left_out():
    acts = _acts()
    del acts["refresh"]
    with pytest.raises(KeyError, match="refresh"):
        year_of(1000, Habits(), acts)


def _first_column(header):
    """Return the first cells of the table of docs/scaling.md that has this header."""
    table = (ROOT / "docs" / "scaling.md").read_text().partition(header)[2]
    rows = table.partition("\n\n")[0].splitlines()[2:]
    return {row.split("|")[1].strip(" `") for row in rows}


def test_the_tables_of_the_documentation_have_the_names_of_the_report():
    assert _first_column("| `an account's act` |") == Habits().acts_a_day().keys()
    figures = year._year_figures(
        year_of(100_000, Habits(), _acts()), dict.fromkeys(year.TABLES, 1.0)
    )
    names = {figure.name for figure in figures}
    kept = {f"{table}, {what}" for table in year.TABLES for what in ("rows", "size")}
    documented = _first_column("| | a row | 100,000 accounts |")
    assert documented - set(year.TABLES) == names - kept


def _pinned(file):
    names = re.findall(r"(?m)^([A-Za-z0-9._-]+)==", (ROOT / file).read_text())
    return {re.sub(r"[-_.]+", "-", name).lower() for name in names}


def _packages_of_the_suite():
    own = _pinned("requirements-dev.txt") - _pinned("requirements.txt")
    packages = [
        package
        for package, makers in packages_distributions().items()
        if own.issuperset(re.sub(r"[-_.]+", "-", maker).lower() for maker in makers)
    ]
    assert "psutil" in packages
    return [*packages, "tests", "deploy"]


def _without_packages_of_the_suite(program):
    return [sys.executable, "-c", WITHOUT + program, *_packages_of_the_suite()]


def test_the_provider_of_the_tour_serves_at_its_port_until_it_is_stopped():
    """It needs no package of the suite, and no standard input."""
    port = free_port()
    program = (
        f"sys.argv[1:] = ['--port', '{port}']; "
        "import runpy; runpy.run_module('bench.identity_provider', run_name='__main__')"
    )
    command = _without_packages_of_the_suite(program)
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "text": True}
    # A suite that runs in the background hands on that it ignores Ctrl-C.
    listens = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    with subprocess.Popen(command, cwd=ROOT, preexec_fn=listens, **streams) as provider:
        issuer = f"http://127.0.0.1:{port}"
        assert provider.stdout.readline() == f"{issuer}\n"
        with urlopen(f"{issuer}/.well-known/openid-configuration", timeout=30) as answer:
            assert json.load(answer)["issuer"] == issuer
        assert provider.poll() is None
        provider.send_signal(signal.SIGINT)
        assert provider.wait(30) == 0


def test_the_bench_needs_no_package_of_the_suite():
    command = _without_packages_of_the_suite("import bench.__main__")
    done = subprocess.run(command, cwd=ROOT, input="", capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
