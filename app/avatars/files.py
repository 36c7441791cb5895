"""Published avatars on disk: `user/<id>/<name>/512.webp` and `1024.webp`.

Functions that touch the disk block and must run in a native thread (`rt.disk`).

Invariant: a path consists only of the account's id and a name that this module generated. Every
upload gets a new name, so the content of a published folder never changes.
"""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from app.core import folders
from app.core.tokens import random_hex

if TYPE_CHECKING:  # keeps the database code out of the rendering process
    from app.users.models import Account

SIZES = (1024, 512)  # pixels, in the order they are rendered
# Readable by the owner's group: a reverse proxy that serves the files often runs as another user.
FOLDER_MODE = 0o750
FILE_MODE = 0o640
_NAME = re.compile(r"v[0-9]{1,10}-[0-9a-f]{32}")
# Ids as this module writes them, with few enough digits to fit a BIGINT column.
_USER_ID = re.compile(r"0|[1-9][0-9]{0,17}")


def new_name(version: int) -> str:
    """Return a name never used before; the version in it is only for people reading a listing."""
    return f"v{version}-{random_hex()}"


def key(user_id: int, name: str) -> str:
    """Return the `avatar_key` that the profile row stores."""
    return f"user/{user_id}/{name}"


def name_of(account: "Account") -> str | None:
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


def remove(root: Path, user_id: int, name: str) -> None:
    """Remove one avatar's files, and the account's folder if it is then empty."""
    shutil.rmtree(_folder_of(root, user_id) / name)
    with suppress(OSError):
        _folder_of(root, user_id).rmdir()


def remove_all_but(root: Path, user_id: int, names: list[str], kept: str | None) -> int:
    """Remove every entry of `names` but `kept`, be it a file or a folder; return how many."""
    removed = 0
    for name in names:
        if name != kept:
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


def write_durably(file: Path, content: bytes) -> None:
    """Write a new file and fsync it."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
    with open(descriptor, "wb") as stream:
        os.fchmod(descriptor, FILE_MODE)  # whatever the umask
        stream.write(content)
        stream.flush()
        os.fsync(descriptor)


def make_folder(folder: Path) -> None:
    """Create a folder that the owner's group may read."""
    folder.mkdir(mode=FOLDER_MODE)
    folder.chmod(FOLDER_MODE)


def _remove_any(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _make(folder: Path) -> None:
    with suppress(FileExistsError):
        make_folder(folder)
        folders.sync(folder.parent)


def _folder_of(root: Path, user_id: int) -> Path:
    return root / "user" / str(user_id)
