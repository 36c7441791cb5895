"""The `flask` command in pipes, at full disks and without standard input."""

import fcntl
import io
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

EMPTY = "Error: Standard input was empty.\n"


@pytest.mark.usefixtures("prepared")
def test_a_reader_who_has_enough_ends_a_listing_quietly(flask_process):
    """As with `| head -1`: what a shell says of every other program, and no word."""
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as pipe:
        ran = flask_process("config", "list", "--json", stdout=pipe)
    assert (ran.returncode, ran.stderr) == (141, "")


@pytest.mark.usefixtures("prepared")
def test_a_full_disk_is_one_line(flask_process):
    with open("/dev/full", "w") as full:
        ran = flask_process("config", "list", stdout=full)
    told = "Error: The output could not be written: No space left on device\n"
    assert (ran.returncode, ran.stderr) == (1, told)


@pytest.mark.usefixtures("prepared")
def test_a_job_may_have_closed_both_streams(flask_process):
    def close():
        os.close(0)
        os.close(1)

    ran = flask_process(
        "config", "set", "mail_smtp_password", "-",
        stdin=None, stdout=None, preexec_fn=close,
    )  # fmt: skip
    assert (ran.returncode, ran.stderr) == (1, EMPTY)


@pytest.mark.parametrize("unbuffered", [False, True])
def test_a_reader_who_has_enough_half_way_ends_it_likewise(run_with, capfd, unbuffered):
    """To the command a disk that is full by then is the same."""
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    raw = open(writing, "wb", buffering=0)  # noqa: SIM115 - the command gets it
    stdout = io.TextIOWrapper(
        raw if unbuffered else io.BufferedWriter(raw), write_through=unbuffered
    )
    with ThreadPoolExecutor(1) as pool, stdout:
        ran = pool.submit(run_with, "config", "list", "--json", stdout=stdout)
        assert os.read(reading, 1) == b"["
        os.close(reading)
        assert ran.result(60) == 141
    # Background work of other tests may log here; a traceback has no such lines.
    told = capfd.readouterr().err.splitlines()
    assert [line for line in told if " app." not in line] == []


@pytest.mark.parametrize("arguments", [("list", "--json"), ("get", "no", "--json")])
def test_every_form_of_output_ends_at_a_full_disk(run_with, capsys, arguments):
    with open("/dev/full", "w") as full:
        assert run_with("config", *arguments, stdout=full) == 1
    assert "No space left on device" in capsys.readouterr().err


@pytest.mark.parametrize("stdin", [io.StringIO(), None], ids=["empty", "closed"])
@pytest.mark.parametrize(
    "arguments",
    [
        ("config", "set", "mail_template_password_reset_html", "-"),
        ("config", "import", "-"),
        ("users", "set-password", "nobody", "--password", "-"),
    ],
)
def test_nothing_on_standard_input_is_no_value(run_with, capsys, arguments, stdin):
    """The file that was to be piped in may have been missing."""
    assert run_with(*arguments, stdin=stdin) == 1
    assert tuple(capsys.readouterr()) == ("", EMPTY)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("config", "validate"), 0),
        (("teams", "list"), 0),
        (("config", "list", "--json"), 0),
        (("config", "get", "no", "--json"), 1),
    ],
)
def test_streams_that_are_closed_are_missed_by_nobody(run_with, capsys, arguments, code):
    assert run_with(*arguments, stdin=None, stdout=None) == code
    assert capsys.readouterr().err == ""
