"""Files that the kernel has at hand."""

import os

import pytest

from app.core import cached_files

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


def require_support(file):
    with file.open("rb") as stream:
        try:
            os.preadv(stream.fileno(), [bytearray(1)], 0, os.RWF_NOWAIT)
        except OSError as error:
            pytest.skip(f"the file system cannot tell what is at hand: {error.strerror}")


def drop_from_memory(file):
    with file.open("rb") as stream:
        os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def first_told(ask, file):
    """Ask again where a file that somebody else renamed just then made the kernel unsure."""
    return next(filter(None, (ask(file) for _ in range(100))), None)


def test_what_the_kernel_has_is_read(file):
    require_support(file)
    assert first_told(cached_files.read, file) == CONTENT
    assert first_told(cached_files.is_there, file)


def test_what_only_the_disk_has_is_not_waited_for(file):
    require_support(file)
    drop_from_memory(file)
    assert cached_files.read(file) is None
    assert file.read_bytes() == CONTENT
    assert first_told(cached_files.read, file) == CONTENT


def test_what_is_only_partly_at_hand_is_not_read(file):
    require_support(file)
    drop_from_memory(file)
    with file.open("rb", buffering=0) as stream:
        os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_RANDOM)  # nothing is read ahead
        stream.read(4096)
    assert cached_files.read(file) is None


def test_a_file_that_is_not_there_is_not_known(tmp_path):
    assert cached_files.read(tmp_path / "picture.webp") is None
    assert not cached_files.is_there(tmp_path / "picture.webp")


def test_an_older_kernel_knows_nothing(file, monkeypatch):
    monkeypatch.setattr(cached_files, "OPENAT2", 100_000)
    assert cached_files.read(file) is None
    assert not cached_files.is_there(file)


def test_no_descriptor_stays_open(file):
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        cached_files.read(file)
        cached_files.is_there(file)
        cached_files.read(file.parent / "none")
    assert len(os.listdir("/proc/self/fd")) == before
