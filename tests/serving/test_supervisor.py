"""When the launcher starts a dead child again, and when it gives up."""

import subprocess

import pytest

from app.serving.launch import DEATHS_ALLOWED, Child, StartFailed


def dead_child():
    return Child("it", lambda: subprocess.Popen(["true"]), stop_seconds=1)


def test_the_first_restart_comes_at_once_and_later_ones_wait_longer():
    child = dead_child()
    pauses = [child.record_death() for _ in range(DEATHS_ALLOWED - 1)]
    assert pauses[0] == 0
    assert pauses == sorted(set(pauses))


def test_the_fifth_death_in_a_row_is_the_last():
    child = dead_child()
    for _ in range(DEATHS_ALLOWED - 1):
        child.record_death()
    with pytest.raises(StartFailed, match="it died 5 times"):
        child.record_death()


def test_a_child_is_dead_only_after_it_was_started():
    child = dead_child()
    assert not child.is_dead()
    child.launch().wait()
    assert child.is_dead()
