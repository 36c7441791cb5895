"""Functions in a sandbox: answered, refused, limited, and started again (app/core/sandbox.py)."""

import errno
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from app.core.sandbox import LimitExceeded, Limits, Sandbox, SandboxFailed
from tests.support.races import run_concurrently
from tests.support.sandboxed import Refused

FUNCTIONS = "tests.support.sandboxed"
LIMITS = Limits(memory_bytes=64 * 1024 * 1024, cpu_seconds=1)


def new_sandbox(name="behave"):
    return Sandbox(f"{FUNCTIONS}:{name}", LIMITS, [Refused])


@pytest.fixture(scope="module")
def sandbox():
    return new_sandbox()


def test_what_the_function_returns_is_returned(sandbox):
    arguments = ["", "a b\n", "\ud800 \N{SNOWMAN}", '"'] * 100
    assert sandbox.call("echo", *arguments) == arguments


def test_documented_refusals_are_passed_on(sandbox):
    with pytest.raises(Refused):
        sandbox.call("refuse", "documented")


def test_failures_of_the_disk_are_passed_on(sandbox):
    with pytest.raises(OSError, match="No space left") as raised:
        sandbox.call("meet_a_full_disk")
    assert raised.value.errno == errno.ENOSPC


@pytest.mark.parametrize(
    ("call", "reason"), [(["fail"], "the reason"), (["refuse", "other"], "NotFound")]
)
def test_other_errors_are_failures_with_their_reason(sandbox, call, reason):
    with pytest.raises(SandboxFailed, match=reason):
        sandbox.call(*call)


@pytest.mark.parametrize("name", ["take_memory", "take_memory_in_c", "compute", "crash"])
def test_what_takes_too_much_or_crashes_ends_alone(sandbox, name):
    server = sandbox.call("server")
    with pytest.raises(LimitExceeded):
        sandbox.call(name)
    assert sandbox.call("server") == server


def test_calls_run_at_once(sandbox, tmp_path, eventually):
    go_on, began = tmp_path / "go on", tmp_path / "began"
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(sandbox.call, "wait_for", str(go_on), str(began))
        eventually(began.exists, "the begin of the first call")
        assert sandbox.call("echo", "meanwhile") == ["meanwhile"]
        go_on.touch()
        assert waiting.result() is True


def test_a_server_that_was_killed_is_replaced(sandbox):
    first = sandbox.call("server")
    os.kill(first, signal.SIGKILL)
    (second,) = set(run_concurrently([partial(sandbox.call, "server")] * 8))
    assert second != first


def test_a_waiting_process_that_was_killed_is_replaced(sandbox, eventually):
    server, answered = sandbox.call("processes")
    waiting = eventually(lambda: the_only_child(server, but=answered), "the one that waits, alone")
    os.kill(waiting, signal.SIGKILL)
    assert sandbox.call("echo", "again") == ["again"]


def the_only_child(server, *, but):
    text = Path(f"/proc/{server}/task/{server}/children").read_text()
    children = [int(pid) for pid in text.split()]
    return children[0] if len(children) == 1 and children != [but] else None


def test_a_function_that_cannot_be_loaded_is_a_failure(capfd):
    with pytest.raises(SandboxFailed, match="no process"):
        new_sandbox("nothing").call()
    assert "nothing" in capfd.readouterr().err


def test_secrets_and_connections_stay_outside(monkeypatch):
    monkeypatch.setenv("GATEHOUSE_SECRET_KEYS", "k1:secret")
    found = new_sandbox().call("surroundings")
    assert not [name for name in found["variables"] if name.startswith("GATEHOUSE")]
    assert not [link for link in found["open"] if link.startswith("socket:")]


def test_the_server_ends_with_its_sandbox(eventually):
    sandbox = new_sandbox()
    server = sandbox.call("server")
    del sandbox
    eventually(lambda: has_ended(server), "the end of the server")


def has_ended(pid):
    # Nobody asks for its exit code.
    return Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z"
