"""Files that the kernel has at hand."""

import os

import pytest

from app.core import cached_files
from app.core.cached_files import CachedFiles

CONTENT = os.urandom(70_000)


@pytest.fixture
def file(tmp_path):
    """A file the disk has, so that the kernel may forget what is in it."""
    file = tmp_path / "picture.webp"
    with file.open("wb") as stream:
        stream.write(CONTENT)
        stream.flush()
        os.fsync(stream.fileno())
    return file


@pytest.fixture
def files(file):
    """Files of a file system that tells what it has."""
    files = CachedFiles()
    assert file.read_bytes() == CONTENT
    files.learn(file)
    if first_told(files.has, file) is None or first_told(files.read, file) is None:
        pytest.skip("this kernel or file system cannot tell what is at hand")
    return files


def first_told(ask, file):
    """Ask again where a file that somebody else renamed just then made the kernel unsure."""
    return next(filter(None, (ask(file) for _ in range(100))), None)


def drop_from_memory(file):
    with file.open("rb") as stream:
        os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def test_what_the_kernel_has_is_read(files, file):
    assert first_told(files.read, file) == CONTENT


def test_what_only_the_disk_has_is_not_waited_for(files, file):
    drop_from_memory(file)
    assert files.read(file) is None
    assert file.read_bytes() == CONTENT
    assert first_told(files.read, file) == CONTENT


def test_what_is_only_partly_at_hand_is_not_read(files, file):
    drop_from_memory(file)
    with file.open("rb", buffering=0) as stream:
        os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_RANDOM)  # nothing is read ahead
        stream.read(4096)
    assert files.read(file) is None


def test_reading_leaves_no_trace(files, file):
    os.utime(file, (1, 1))
    assert first_told(files.read, file) == CONTENT
    assert file.stat().st_atime == 1


def test_nothing_is_known_before_it_was_learned(files, file):
    others = CachedFiles()
    assert first_told(others.read, file) is None
    assert first_told(others.has, file) is None


def test_a_file_that_is_not_there_is_not_known(files, tmp_path):
    assert files.read(tmp_path / "none") is None
    assert not files.has(tmp_path / "none")


def test_nobody_is_waited_for_at_a_pipe(files, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert files.read(tmp_path / "pipe") is None


def test_an_older_kernel_knows_nothing(files, file, monkeypatch):
    monkeypatch.setattr(cached_files, "OPENAT2", 100_000)
    assert files.read(file) is None
    assert not files.has(file)


@pytest.mark.parametrize("missing", ["a constant", "the call"])
def test_a_python_without_the_call_never_learns(file, monkeypatch, missing):
    def preadv(*_):
        raise NotImplementedError

    if missing == "a constant":
        monkeypatch.delattr(os, "RWF_NOWAIT")
    else:
        monkeypatch.setattr(os, "preadv", preadv)
    files = CachedFiles()
    files.learn(file)
    assert files.read(file) is None


def test_no_descriptor_stays_open(files, file):
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        files.read(file)
        files.has(file)
        files.read(file.parent / "none")
    assert len(os.listdir("/proc/self/fd")) == before
