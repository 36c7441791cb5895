"""Files that the kernel has at hand."""

import ctypes
import errno
import mmap
import os
import time

import pytest

from app.core import cached_files
from app.core.cached_files import CachedFiles
from app.core.native_pool import NativePool

# So long that the disk cannot have fetched all of it while the kernel looks for the first page.
CONTENT = os.urandom(8_000_000)
LIBC = ctypes.CDLL(None, use_errno=True)


class Disk(NativePool):
    """Counts what it is asked."""

    def __init__(self):
        super().__init__(1)
        self.asked = 0

    def run(self, function, *arguments):
        self.asked += 1
        return super().run(function, *arguments)


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
def disk():
    return Disk()


@pytest.fixture
def files(file, disk):
    """Files of a file system that tells what it has."""
    files = CachedFiles(disk)
    assert files.read(file) == CONTENT
    assert disk.asked == 1
    if not (needs_no_disk(disk, files.read, file) and needs_no_disk(disk, files.require, file)):
        pytest.skip("this kernel or file system cannot tell what is at hand")
    return files


def needs_no_disk(disk, ask, file):
    """Ask again where a file that somebody else renamed just then made the kernel unsure."""
    for _ in range(100):
        before = disk.asked
        ask(file)
        if disk.asked == before:
            return True
    return False


def needs_the_disk(disk, files, file, forget):
    """Read again where the kernel fetched the file just while it was asked whether it has it."""
    for _ in range(10):
        forget(file)
        before = disk.asked
        assert files.read(file) == CONTENT
        if disk.asked == before + 1:
            return True
    return False


def drop_from_memory(file):
    """Have the kernel forget it, which it puts off while it is still busy with a page."""
    with file.open("rb") as stream:
        for _ in range(1000):
            os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            if not is_in_memory(stream.fileno()):
                return
            time.sleep(0.01)
    pytest.fail("the kernel keeps the file in memory")


def is_in_memory(descriptor):
    """Tell whether any page is; to read, even without waiting, would have the rest fetched."""
    pages = (ctypes.c_ubyte * (len(CONTENT) // mmap.PAGESIZE + 1))()
    with mmap.mmap(descriptor, 0, access=mmap.ACCESS_COPY) as mapped:
        first = ctypes.c_char.from_buffer(mapped)
        failed = LIBC.mincore(ctypes.byref(first), ctypes.c_size_t(len(mapped)), pages)
        del first
    assert not failed, os.strerror(ctypes.get_errno())
    return any(page & 1 for page in pages)


def test_what_the_kernel_has_is_read(files, file):
    assert files.read(file) == CONTENT


def test_what_only_the_disk_has_is_not_waited_for(files, file, disk):
    assert needs_the_disk(disk, files, file, drop_from_memory)
    assert needs_no_disk(disk, files.read, file)


def test_what_is_only_partly_at_hand_comes_from_the_disk(files, file, disk):
    def keep_one_page(dropped):
        drop_from_memory(dropped)
        with dropped.open("rb", buffering=0) as stream:
            os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_RANDOM)  # nothing is read ahead
            stream.read(4096)

    assert needs_the_disk(disk, files, file, keep_one_page)


def test_reading_leaves_no_trace(files, file):
    os.utime(file, (1, file.stat().st_mtime + 10))
    assert any(cached_files._content(file) for _ in range(100))
    assert file.stat().st_atime == 1


def test_a_file_that_is_not_there_is_asked_for(files, tmp_path):
    with pytest.raises(FileNotFoundError):
        files.read(tmp_path / "none")
    with pytest.raises(FileNotFoundError):
        files.require(tmp_path / "none")


def test_nobody_is_waited_for_at_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert cached_files._content(tmp_path / "pipe") is None


def test_an_older_kernel_knows_nothing(files, file, disk, monkeypatch):
    monkeypatch.setattr(cached_files, "OPENAT2", 100_000)
    before = disk.asked
    assert files.read(file) == CONTENT
    files.require(file)
    assert disk.asked == before + 2


@pytest.mark.parametrize("missing", ["a constant", "the call"])
def test_a_python_without_the_call_never_learns(file, disk, monkeypatch, missing):
    def preadv(*_):
        raise NotImplementedError

    if missing == "a constant":
        monkeypatch.delattr(os, "RWF_NOWAIT")
    else:
        monkeypatch.setattr(os, "preadv", preadv)
    files = CachedFiles(disk)
    assert [files.read(file) for _ in range(3)] == [CONTENT] * 3
    assert disk.asked == 3


@pytest.mark.parametrize(
    ("number", "times"), [(errno.EOPNOTSUPP, 1), (errno.EINVAL, 1), (errno.EAGAIN, 3)]
)
def test_a_file_system_that_cannot_tell_is_asked_once(file, disk, monkeypatch, number, times):
    asked = []

    def preadv(*_):
        asked.append(None)
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "preadv", preadv)
    files = CachedFiles(disk)
    assert [files.read(file) for _ in range(3)] == [CONTENT] * 3
    assert (disk.asked, len(asked)) == (3, times)


def test_a_sandbox_that_forbids_the_call_is_asked_once(file, disk, monkeypatch):
    asked = []

    def refused(path, how):
        asked.append(path)
        raise PermissionError(errno.EPERM, "openat2")

    monkeypatch.setattr(cached_files, "_opened", refused)
    files = CachedFiles(disk)
    assert [files.read(file) for _ in range(3)] == [CONTENT] * 3
    assert (disk.asked, len(asked)) == (3, 1)


def test_no_descriptor_stays_open(files, file, tmp_path):
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        files.read(file)
        files.require(file)
        with pytest.raises(FileNotFoundError):
            files.read(tmp_path / "none")
    assert len(os.listdir("/proc/self/fd")) == before
