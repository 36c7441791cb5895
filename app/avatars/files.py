"""Avatars on disk: `user/<id>/<name>/512.webp` and `1024.webp`; uploads under way in `staging/`.

Functions that touch the disk block and run in a native thread (`on_disk`).

Invariant: a path consists only of the account's id and a name that this module generated. Every
upload gets a new name, so the content of a published folder never changes.
"""

import logging
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from app.avatars.errors import StorageFailed
from app.core import folders
from app.core.thread_pool import ThreadPool
from app.crypto.tokens import random_hex
from app.users.models import Account

T = TypeVar("T")

# For all work on files, also that of other modules: native threads. Uploads queue instead of being
# rejected.
DISK = ThreadPool(4, max_queued=100_000)

log = logging.getLogger(__name__)

SIZES = (1024, 512)  # pixels, in the order they are rendered
# Readable by the owner's group: a reverse proxy that serves the files often runs as another user.
FOLDER_MODE = 0o750
_NAME = re.compile(r"v[0-9]{1,10}-[0-9a-f]{32}")
# Ids as this module writes them, with few enough digits to fit a BIGINT column.
_USER_ID = re.compile(r"0|[1-9][0-9]{0,17}")


@dataclass
class Staged:
    """The files of one upload while it is received and rendered, in a folder of their own.

    `is_kept` leaves the folder to a later sweep, which then reconciles the account.
    """

    user_id: int
    folder: Path
    is_kept: bool = False

    @property
    def source(self) -> Path:
        """The file as it was sent."""
        return self.folder / "source"

    @property
    def rendered(self) -> Path:
        """The folder of what was rendered of it."""
        return self.folder / "rendered"

    def clear(self) -> None:
        """Remove the folder unless it is kept; what cannot be removed is left to a sweep."""
        if not self.is_kept:
            shutil.rmtree(self.folder, ignore_errors=True)


def on_disk(function: Callable[..., T], *arguments: Any) -> T:
    """Run a function that blocks on the disk in a native thread and return its result.

    Raises: StorageFailed, which is logged, in place of an OSError.
    """
    with disk_errors():
        return DISK.run(function, *arguments)


@contextmanager
def disk_errors() -> Iterator[None]:
    """Log an OSError raised in the block and raise StorageFailed in its place."""
    try:
        yield
    except OSError as error:
        log.error("the avatar folder failed: %s", error)  # noqa: TRY400 - the message says it all
        raise StorageFailed from error


def stage(root: Path, user_id: int) -> Staged:
    """Create the folders for an upload of this account."""
    make_root(root)
    staging = root / "staging"
    staging.mkdir(mode=0o700, exist_ok=True)
    staged = Staged(user_id, Path(tempfile.mkdtemp(prefix=f"{user_id}-", dir=staging)))
    _make_folder(staged.rendered)
    return staged


def list_abandoned(root: Path, before: float) -> list[Staged]:
    """Return the uploads begun before a time, in seconds of Unix, whose process must have died."""
    try:
        with os.scandir(root / "staging") as entries:
            old = [Path(entry) for entry in entries if entry.stat().st_mtime < before]
    except FileNotFoundError:
        return []
    users = ((user_id_of(folder.name.partition("-")[0]), folder) for folder in old)
    return [Staged(user_id, folder) for user_id, folder in users if user_id is not None]


def new_name(version: int) -> str:
    """Return a name never used before; the version in it is only for people reading a listing."""
    return f"v{version}-{random_hex()}"


def key(user_id: int, name: str) -> str:
    """Return the `avatar_key` that the profile row stores."""
    return f"user/{user_id}/{name}"


def name_of(account: Account) -> str | None:
    """Return the name of the account's files; None if it has none or the row is corrupt."""
    head, _, name = (account.avatar_key or "").rpartition("/")
    is_ours = head == f"user/{account.id}" and _NAME.fullmatch(name)
    return name if is_ours else None


def user_id_of(text: str) -> int | None:
    """Parse an account id from a file name; None if this module cannot have written it."""
    return int(text) if _USER_ID.fullmatch(text) else None


def path(root: Path, user_id: int, name: str, size: int) -> Path:
    """Return the path of one file."""
    return root / file_key(user_id, name, size)


def file_key(user_id: int, name: str, size: int) -> str:
    """Return the path of one file relative to the avatar folder."""
    return f"{key(user_id, name)}/{size}.webp"


def exists(root: Path, user_id: int, name: str) -> bool:
    """Return whether an avatar's folder exists."""
    return (_folder_of(root, user_id) / name).is_dir()


def make_root(root: Path) -> None:
    """Create the avatar folder unless it exists."""
    if not root.is_dir():
        root.parent.mkdir(parents=True, exist_ok=True)
        _make(root)


def publish_folder(rendered: Path, root: Path, user_id: int, name: str) -> None:
    """Durably move a folder of finished files to where they are served from.

    The files themselves were fsynced when they were written; this fsyncs the folders.
    """
    folder = _folder_of(root, user_id)
    _make(folder.parent)
    _make(folder)
    rendered.rename(folder / name)
    folders.sync(folder)


def remove(root: Path, user_id: int, names: Iterable[str]) -> int:
    """Remove these entries, files or folders, and the account's folder if it is then empty.

    Return how many there were.
    """
    removed = 0
    for name in names:
        with suppress(FileNotFoundError):
            _remove_any(_folder_of(root, user_id) / name)
            removed += 1
    with suppress(OSError):
        _folder_of(root, user_id).rmdir()
    return removed


def list_names(root: Path, user_id: int) -> list[str]:
    """Return the names of all entries in the account's folder; none if it does not exist."""
    try:
        return os.listdir(_folder_of(root, user_id))
    except (FileNotFoundError, NotADirectoryError):
        return []


def list_users(root: Path) -> Iterator[int]:
    """Yield the ids of all accounts that have a folder."""
    try:
        with os.scandir(root / "user") as entries:
            ids = [user_id_of(entry.name) for entry in entries]
        yield from (user_id for user_id in ids if user_id is not None)
    except FileNotFoundError:
        return


def _remove_any(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _make(folder: Path) -> None:
    with suppress(FileExistsError):
        _make_folder(folder)
        folders.sync(folder.parent)


def _make_folder(folder: Path) -> None:
    folder.mkdir(mode=FOLDER_MODE)
    folder.chmod(FOLDER_MODE)  # whatever the umask


def _folder_of(root: Path, user_id: int) -> Path:
    return root / "user" / str(user_id)
