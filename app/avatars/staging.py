"""Staging area on disk for an upload while it is received and rendered.

Every function here blocks on the disk and must run in a native thread (`rt.disk`).

Invariant: a staged upload is live exactly as long as its file is locked. The kernel releases
the lock when the process ends, however it ends, and on a shared volume other machines see the lock
too. So a process that acquires the lock of one may clear it at once, whoever made it.
"""

import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from app.avatars import files
from app.core.tokens import random_uuid

RENDERED = ".rendered"


class StagedUpload:
    """A locked file for the upload, named after the account, and a folder for rendered files."""

    def __init__(self, source: Path, descriptor: int) -> None:
        self.source = source
        self.rendered = source.with_name(source.name + RENDERED)
        self._descriptor = descriptor
        self._is_kept = False

    @property
    def user_id(self) -> int:
        """The id of the uploading account."""
        return int(self.source.name.partition("-")[0])

    def write(self, content: bytes) -> None:
        """Append to the source file."""
        view = memoryview(content)
        while view:
            view = view[os.write(self._descriptor, view) :]

    def keep(self) -> None:
        """Make `clear` leave an empty source file, so that a later sweep reconciles the account."""
        self._is_kept = True

    def clear(self) -> None:
        """Remove everything and release the lock; the source file goes last, as it is the lock."""
        try:
            shutil.rmtree(self.rendered, ignore_errors=True)
            if self._is_kept:
                os.ftruncate(self._descriptor, 0)
            else:
                self.source.unlink(missing_ok=True)
        finally:
            os.close(self._descriptor)


def stage_upload(root: Path, user_id: int) -> StagedUpload:
    """Create and lock the files for an upload of this account."""
    folder = _folder(root)
    files.make_root(root)
    folder.mkdir(mode=0o700, exist_ok=True)
    while True:
        source = folder / f"{user_id}-{random_uuid()}"
        descriptor = os.open(source, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            # A sweep may have locked and removed the file before this process locked it.
            if os.fstat(descriptor).st_nlink:
                return StagedUpload(source, descriptor)
        except OSError:
            source.unlink(missing_ok=True)
            os.close(descriptor)
            raise
        os.close(descriptor)


def claim_abandoned(root: Path) -> Iterator[StagedUpload]:
    """Yield the uploads whose process has died, each locked for the caller."""
    for name in _listed(_folder(root)):
        source = _folder(root) / name
        if name.endswith(RENDERED):
            # The source is removed last, so a folder without one is an orphan.
            if not source.with_name(name.removesuffix(RENDERED)).exists():
                shutil.rmtree(source, ignore_errors=True)
        elif files.user_id_of(name.partition("-")[0]) is not None and (staged := _claim(source)):
            yield staged


def _claim(source: Path) -> StagedUpload | None:
    try:
        descriptor = os.open(source, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None  # removed, not a file, or owned by another user
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return StagedUpload(source, descriptor)


def _folder(root: Path) -> Path:
    return root / "staging"


def _listed(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except FileNotFoundError:
        return []
