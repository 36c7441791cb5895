"""The folder in which the workers of one master keep their metrics until they are scraped."""

import logging
import os
import shutil
from functools import cache
from pathlib import Path
from typing import Any

log = logging.getLogger(__name__)

FIRST_BYTES = 1 << 16


@cache
def prepare(folder: Path) -> None:
    """Empty `folder` and make prometheus_client use it; call this before importing that.

    Once per process: at a reload gunicorn reads its configuration again while workers write.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, mode=0o700)
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder)
    from prometheus_client import values

    values.MmapedDict = preallocated_mmap_dict()  # type: ignore[attr-defined]


def preallocated_mmap_dict() -> type[Any]:
    """Return prometheus_client's memory-mapped file class, made safe for a full disk.

    Its own files are sparse, and writing to a hole through the mapping on a full disk kills the
    process (SIGBUS): every request would cost a worker. Counts that do not fit on the disk stay in
    this process's memory, invisible to the others.
    """
    from prometheus_client.mmap_dict import MmapedDict

    class Counts(MmapedDict):
        """One worker's values for one type of metric."""

        def __init__(self, filename: str, read_mode: bool = False) -> None:
            if not read_mode:
                filename = _preallocated(filename, FIRST_BYTES)
            super().__init__(filename, read_mode)  # type: ignore[no-untyped-call]

        def _init_value(self, key: str) -> None:
            # An upper bound on the size of an entry with this key.
            if self._used + 2 * len(key.encode()) + 64 > self._capacity:
                self._grow()
            super()._init_value(key)  # type: ignore[no-untyped-call]

        def _grow(self) -> None:
            counted = self._m[: self._used]
            filename = _preallocated(self._fname, 2 * self._capacity)
            self.close()  # type: ignore[no-untyped-call]
            if filename != self._fname:
                with open(filename, "r+b") as file:
                    file.write(counted)
            super().__init__(filename)  # type: ignore[no-untyped-call]

    return Counts


def _preallocated(filename: str, size: int) -> str:
    """Return a file that has `size` bytes allocated: `filename`, or else one in memory."""
    try:
        descriptor = os.open(filename, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, size)
        finally:
            os.close(descriptor)
    except OSError as error:
        _warn_once(os.getpid(), f"{os.path.dirname(filename)}: {error.strerror}")
        memory = os.memfd_create("metrics")  # open for as long as the process lives
        os.ftruncate(memory, size)
        return f"/proc/self/fd/{memory}"
    return filename


@cache
def _warn_once(_process: int, reason: str) -> None:
    """Log it once per process: each type of metric has a file, and all fail alike."""
    log.warning("counts of this worker are missing from /health/metrics: %s", reason)
