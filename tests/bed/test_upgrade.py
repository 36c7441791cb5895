"""`python -m deploy.bed --upgrade-from`: the run itself, from the present commit.

What it finds out about older versions needs their packages, and minutes: docs/operations.md.
"""

import shutil
import sys

import pytest

from deploy.bed import __main__ as command
from deploy.bed import upgrade
from deploy.bed.proxy import find_nginx
from tests.support.servers import ROOT, NotStarted

pytestmark = pytest.mark.live


@pytest.fixture
def call(monkeypatch):
    """Run the command."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("this is no clone of the repository: there is no version to check out")

    def run(*arguments):
        monkeypatch.setattr(command.signal, "signal", lambda *_: None)
        monkeypatch.setattr(sys, "argv", ["bed", *arguments])
        command.main()

    return run


def test_an_upgrade_and_the_way_back_end_no_session(call, capsys):
    try:
        find_nginx()
    except NotStarted as reason:
        pytest.skip(str(reason))
    call("--upgrade-from", "HEAD", "--database", "sqlite", "--rest", "1s")
    told = capsys.readouterr().out
    assert "10 of 10 old sessions kept" in told
    assert "no invariant broken" in told
    assert all(f"| {step.name} |" in told for step in upgrade.STEPS["sqlite"])


def test_a_version_that_the_repository_lacks_is_told(call):
    with pytest.raises(SystemExit) as ended:
        call("--upgrade-from", "v0.0.0", "--database", "sqlite")
    assert "not started: " in str(ended.value.code)
    assert "v0.0.0" in str(ended.value.code)
