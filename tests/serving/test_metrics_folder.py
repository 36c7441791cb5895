"""Counting goes on while the disk is full."""

import errno
import logging
import os

import pytest

from app.serving import metrics_folder


@pytest.fixture
def counts_class():
    return metrics_folder.preallocated_mmap_dict()


@pytest.fixture
def open_counts(counts_class, tmp_path):
    opened = []

    def open_them(name="counter_1.db"):
        opened.append(counts_class(str(tmp_path / name)))
        return opened[-1]

    yield open_them
    for counts in opened:
        counts.close()


def fill_disk(monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", refuse)


def keys(number):
    return [f"a key that takes some room, and has a number: {n}" for n in range(number)]


def test_a_file_owns_its_blocks_from_the_start_and_as_it_grows(open_counts, tmp_path):
    counts = open_counts()
    file = tmp_path / "counter_1.db"
    for name in keys(2000):
        counts.write_value(name, 1.0, 0.0)
        stored = file.stat()
        assert stored.st_blocks * 512 >= stored.st_size
    assert file.stat().st_size > metrics_folder.FIRST_BYTES
    counts.close()
    again = open_counts()
    assert [again.read_value(name)[0] for name in keys(2000)] == [1.0] * 2000


def test_without_room_for_a_file_it_counts_in_memory(open_counts, tmp_path, monkeypatch):
    fill_disk(monkeypatch)
    counts = open_counts()
    for name in keys(100):
        counts.write_value(name, 2.0, 0.0)
    assert counts.read_value(keys(1)[0])[0] == 2.0
    assert (tmp_path / "counter_1.db").stat().st_size == 0


def test_without_room_to_grow_it_goes_on_in_memory_with_what_it_counted(open_counts, monkeypatch):
    counts = open_counts()
    counts.write_value("the first", 3.0, 0.0)
    fill_disk(monkeypatch)
    for name in keys(2000):
        counts.write_value(name, 1.0, 0.0)
    assert counts.read_value("the first")[0] == 3.0
    assert counts.read_value(keys(2000)[-1])[0] == 1.0


def test_that_it_counts_in_memory_is_told_once(open_counts, tmp_path, monkeypatch, caplog):
    caplog.set_level(logging.WARNING)
    fill_disk(monkeypatch)
    for kind in ("counter", "histogram"):
        open_counts(f"{kind}_1.db").write_value(keys(1)[0], 1.0, 0.0)
    reason = f"{tmp_path}: No space left on device"
    assert caplog.messages == [f"counts of this worker are missing from /health/metrics: {reason}"]
