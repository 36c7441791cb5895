"""bin/gatehouse: the commands under the product's own name; completion, colours and progress."""

import os
import pty
import subprocess
from contextlib import suppress

import pytest

from app import __version__
from tests.support.servers import ROOT

GATEHOUSE = ROOT / "bin" / "gatehouse"


@pytest.fixture
def environment(flask, tmp_path):
    assert flask("prepare").returncode == 0
    kept = {k: v for k, v in os.environ.items() if not k.startswith("GATEHOUSE_")}
    kept.pop("NO_COLOR", None)
    return kept | {"GATEHOUSE_INSTANCE": str(tmp_path / "instance"), "TERM": "xterm"}


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
def at_terminal(environment):
    """Run it at a terminal; return all that appears there."""

    def run(*arguments, **variables):
        ours, theirs = pty.openpty()
        streams = dict.fromkeys(("stdin", "stdout", "stderr"), theirs)
        with subprocess.Popen([GATEHOUSE, *arguments], env=environment | variables, **streams):
            os.close(theirs)
            seen = b""
            with suppress(OSError):  # Linux reports the end of a terminal as an error
                while piece := os.read(ours, 4096):
                    seen += piece
        os.close(ours)
        return seen.decode()

    return run


def completed(gatehouse, *words):
    words = ("gatehouse", *words)
    asked = {"COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
    offered = gatehouse(_GATEHOUSE_COMPLETE="bash_complete", **asked)
    assert (offered.returncode, offered.stderr) == (0, "")
    return [line.removeprefix("plain,") for line in offered.stdout.splitlines()]


def test_it_introduces_the_product_and_not_flask(gatehouse):
    assert gatehouse("--version").stdout == f"Gatehouse, version {__version__}\n"
    told = gatehouse("--help").stdout
    assert told.startswith("Usage: gatehouse ")
    assert "flask" not in told.lower()
    assert "external-auth" in told


def test_it_is_the_same_command_from_any_folder(gatehouse, flask):
    for arguments in (("config", "list"), ("users", "lst")):
        ours, theirs = gatehouse(*arguments), flask(*arguments)
        assert (ours.returncode, ours.stdout) == (theirs.returncode, theirs.stdout)
        assert ours.stderr.splitlines()[-1:] == theirs.stderr.splitlines()[-1:]


def test_settings_users_and_commands_are_completed(gatehouse):
    new = (
        "users",
        "create",
        "--username",
        "Jane",
        "--email",
        "jane@example.com",
        "--role",
        "admin",
    )
    assert gatehouse(*new).returncode == 0
    assert completed(gatehouse, "config", "set", "public_site") == ["public_site_url"]
    assert completed(gatehouse, "users", "show", "ja") == ["Jane"]
    assert completed(gatehouse, "teams", "create", "Crew", "--owner", "j") == ["Jane"]


def test_a_terminal_gets_colours_unless_it_wants_none(gatehouse, at_terminal):
    red = "\x1b[31mError:\x1b[0m There is no setting nope."
    assert red in at_terminal("config", "get", "nope")
    assert at_terminal("config", "list").startswith("\x1b[1mKEY ")
    for variables in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert "\x1b" not in at_terminal("config", "get", "nope", **variables)
    assert "\x1b" not in gatehouse("config", "list").stdout


def test_what_takes_a_while_says_so_at_a_terminal(gatehouse, at_terminal):
    assert at_terminal("prepare") == "bringing the database up to date ...\r\n"
    assert gatehouse("prepare").stderr == ""
