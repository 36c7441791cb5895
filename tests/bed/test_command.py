"""`python -m deploy.bed`, the command of docs/operations.md."""

import json
import signal
import sys
from contextlib import nullcontext
from pathlib import Path

import psycopg2
import pytest

from app.store.redis import connect
from deploy.bed import __main__ as command
from deploy.bed.storm import Report


@pytest.fixture
def call(monkeypatch):
    """Run the command on this bed; it ends instead of waiting for Ctrl-C."""
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(signal, "pause", lambda: None)

    def run(bed, *arguments):
        monkeypatch.setattr(command, "running", lambda **_: nullcontext(bed))
        monkeypatch.setattr(sys, "argv", ["bed", *arguments])
        command.main()

    return run


def test_it_tells_where_everything_is(bed, call, capsys):
    call(bed)
    told = capsys.readouterr().out
    where, _ = json.JSONDecoder().raw_decode(told)
    assert where["nginx"] == bed.proxy.url
    assert len(where["instances"]) == 2
    psycopg2.connect(where["database"]).close()
    with connect(where["valkey"]) as redis:
        assert redis.ping()
    for place in (where["certificate"], *where["logs"]):
        assert Path(place).exists(), place
    assert f"--cacert {where['certificate']} {where['nginx']}/health/ready" in told


@pytest.mark.parametrize(("broken", "status"), [([], None), (["a change is lost"], 1)])
def test_a_storm_that_breaks_something_ends_with_status_1(
    call, monkeypatch, capsys, broken, status
):
    asked = []

    class Storm:
        def __init__(self, _bed, *, recovery, faults):
            asked.append((recovery, [fault.name for fault in faults]))

        def run(self, seconds, *, hold, rest):
            asked.append((seconds, hold, rest))
            return Report(seconds, {"2xx": 1}, [], broken, changes=0, events=0, longest=0.1)

    monkeypatch.setattr(command, "Storm", Storm)
    with pytest.raises(SystemExit) if status else nullcontext() as ended:
        call(None, "--storm", "3m", "--only", "disk")
    assert ended is None or ended.value.code == status
    disks = ["PostgreSQL's disk is full", "the disk is full"]
    assert asked == [(5.0, disks), (180.0, 6.0, 6.0)]
    assert (f"BROKEN: {broken[0]}" if broken else "no invariant broken") in capsys.readouterr().out


def test_a_word_that_names_no_fault_is_refused(call, capsys):
    with pytest.raises(SystemExit) as ended:
        call(None, "--storm", "3m", "--only", "nosuchword")
    assert ended.value.code == 2
    assert "no fault has one of these words: nosuchword" in capsys.readouterr().err
