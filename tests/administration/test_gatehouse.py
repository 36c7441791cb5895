"""bin/gatehouse: the commands under the product's own name; completion, colours and progress."""

import os
import pty
import subprocess
from contextlib import suppress

import pytest
from click.shell_completion import ShellComplete
from flask.cli import ScriptInfo

from app import __version__
from app import commands as cli
from tests.support.factories import make_user
from tests.support.servers import ROOT

GATEHOUSE = ROOT / "bin" / "gatehouse"


@pytest.fixture
def gatehouse(environment, tmp_path):
    """Run it in a folder where `app` is something else."""
    (tmp_path / "app.py").write_text("raise RuntimeError")

    def run(*arguments, **variables):
        return subprocess.run(
            [GATEHOUSE, *arguments],
            cwd=tmp_path,
            env=environment | variables,
            capture_output=True,
            text=True,
        )

    return run


@pytest.fixture
def at_terminal(run_with, monkeypatch):
    """Run a command at a terminal; return all that appears there."""

    def run(*arguments, **variables):
        ours, theirs = pty.openpty()
        with monkeypatch.context() as patch, open(theirs, "w") as terminal:
            patch.delenv("NO_COLOR", raising=False)
            for name, value in ({"TERM": "xterm"} | variables).items():
                patch.setenv(name, value)
            run_with(*arguments, stdout=terminal, stderr=terminal)
        return drained(ours)

    return run


def drained(ours):
    seen = b""
    with suppress(OSError):  # Linux reports the end of a terminal as an error
        while piece := os.read(ours, 4096):
            seen += piece
    os.close(ours)
    return seen.decode()


def test_it_introduces_the_product_and_not_flask(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["gatehouse", "--help"])
    with pytest.raises(SystemExit):
        cli.main()
    told = capsys.readouterr().out
    assert told.startswith("Usage: gatehouse ")
    assert "flask" not in told.lower()
    assert "external-auth" in told
    monkeypatch.setattr("sys.argv", ["gatehouse", "--version"])
    with pytest.raises(SystemExit):
        cli.main()
    assert capsys.readouterr().out == f"Gatehouse, version {__version__}\n"


@pytest.mark.usefixtures("prepared")
def test_it_is_the_same_command_from_any_folder_and_completes_what_it_stores(gatehouse, flask):
    ours, theirs = gatehouse("config", "list"), flask("config", "list")
    assert (ours.returncode, ours.stdout, ours.stderr) == (0, theirs.stdout, "")
    words = {"COMP_WORDS": "gatehouse users show ja", "COMP_CWORD": "3"}
    create = (
        "users",
        "create",
        "--username",
        "Jane",
        "--email",
        "j@example.com",
        "--role",
        "admin",
    )
    assert flask(*create).exit_code == 0
    offered = gatehouse(_GATEHOUSE_COMPLETE="bash_complete", **words)
    assert (offered.returncode, offered.stdout, offered.stderr) == (0, "plain,Jane\n", "")
    assert gatehouse("users", "show", "nobody").returncode == 1
    assert gatehouse("users", "lst").returncode == 2


@pytest.mark.parametrize(
    ("words", "typed", "offered"),
    [
        (["config", "set"], "public_site", ["public_site_url"]),
        (["users", "show"], "ja", ["Jane"]),
        (["teams", "create", "Crew", "--owner"], "j", ["Jane"]),
    ],
)
def test_settings_users_and_commands_are_completed(app, rt, words, typed, offered):
    make_user(rt, username="Jane")
    context = {"obj": ScriptInfo(create_app=lambda: app)}
    found = ShellComplete(app.cli, context, "gatehouse", "").get_completions(words, typed)
    assert [item.value for item in found] == offered


def test_a_terminal_gets_colours_unless_it_wants_none(at_terminal, flask):
    red = "\x1b[31mError:\x1b[0m There is no setting nope."
    assert red in at_terminal("config", "get", "nope")
    assert at_terminal("config", "list").startswith("\x1b[1mKEY ")
    for variables in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert "\x1b" not in at_terminal("config", "get", "nope", **variables)
    assert "\x1b" not in flask("config", "list").stdout


def test_what_takes_a_while_says_so_at_a_terminal(at_terminal, flask):
    assert at_terminal("prepare") == "bringing the database up to date ...\r\n"
    assert flask("prepare").stderr == ""
