"""The `flask` command in pipes, at full disks and without standard input."""

import fcntl
import os
import subprocess
import sys

import pytest

from tests.support.servers import ROOT


@pytest.fixture
def start(flask, tmp_path):
    """Begin `flask ...` on an instance; the process can be given files for its streams."""
    assert flask("prepare").returncode == 0
    kept = {k: v for k, v in os.environ.items() if not k.startswith("GATEHOUSE_")}
    environment = kept | {"GATEHOUSE_INSTANCE": str(tmp_path / "instance")}

    def begin(*arguments, unbuffered="", **streams):
        command = [sys.executable, "-m", "flask", "--app", "wsgi", *arguments]
        ours = environment | {"PYTHONUNBUFFERED": unbuffered}
        return subprocess.Popen(
            command, cwd=ROOT, env=ours, stderr=subprocess.PIPE, text=True, **streams
        )

    return begin


@pytest.mark.parametrize(
    "arguments",
    [("config", "list", "--json"), ("config", "get", "no", "--json")],
)
def test_a_reader_who_has_enough_ends_a_listing_quietly(start, arguments):
    """As with `| head -1`: what a shell says of every other program, and no word."""
    reading, writing = os.pipe()
    os.close(reading)
    with start(*arguments, stdout=writing) as process:
        os.close(writing)
        assert (process.wait(60), process.stderr.read()) == (141, "")


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_who_has_enough_half_way_ends_it_likewise(start, unbuffered):
    """To the command a disk that is full by then is the same."""
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    with start("config", "list", "--json", unbuffered=unbuffered, stdout=writing) as process:
        os.close(writing)
        assert os.read(reading, 1) == b"["
        os.close(reading)
        assert (process.wait(60), process.stderr.read()) == (141, "")


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_full_disk_is_one_line(start, options):
    with open("/dev/full", "w") as full, start("config", "list", *options, stdout=full) as process:
        told = "Error: The output could not be written: No space left on device\n"
        assert (process.wait(60), process.stderr.read()) == (1, told)


@pytest.mark.parametrize(
    ("there", "arguments"),
    [
        (True, ("config", "set", "mail_template_password_reset_html", "-")),
        (True, ("config", "import", "-")),
        (True, ("users", "set-password", "nobody", "--password", "-")),
        (False, ("config", "set", "mail_smtp_password", "-")),
    ],
)
def test_nothing_on_standard_input_is_no_value(start, there, arguments):
    """The file that was to be piped in may have been missing."""
    closed = {} if there else {"preexec_fn": lambda: os.close(0)}
    with start(*arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, **closed) as process:
        told = "Error: Standard input was empty.\n"
        assert (process.wait(60), process.stdout.read(), process.stderr.read()) == (1, "", told)


def test_a_command_that_reads_nothing_needs_no_standard_input(start):
    with start("config", "validate", preexec_fn=lambda: os.close(0)) as process:
        assert (process.wait(60), process.stderr.read()) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("teams", "list"), 0),
        (("config", "list", "--json"), 0),
        (("config", "get", "no", "--json"), 1),
    ],
)
def test_standard_output_may_be_closed(start, arguments, code):
    """As a job may have it."""
    with start(*arguments, preexec_fn=lambda: os.close(1)) as process:
        assert (process.wait(60), process.stderr.read()) == (code, "")
