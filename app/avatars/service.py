"""Use cases of avatars."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from app.audit.models import Action
from app.avatars import files, publishing, queries
from app.avatars.errors import AvatarNotFound, NothingUploaded, SizeUnknown
from app.avatars.files import on_disk
from app.core.access import Principal
from app.core.client import Client
from app.core.runtime import Runtime
from app.sessions import service as sessions
from app.users import queries as users_queries
from app.users import service as users
from app.users.models import Account, AvatarSource

T = TypeVar("T")

log = logging.getLogger(__name__)

# How many times to try a read while concurrent uploads keep replacing the files.
READ_ATTEMPTS = 5


@dataclass(frozen=True)
class Picture:
    """One published file; a `name` is never reused for other content."""

    user_id: int
    name: str
    size: int

    @property
    def etag(self) -> str:
        """The entity tag, unique to this content."""
        return f"{self.name}-{self.size}"

    @property
    def key(self) -> str:
        """The path relative to the avatar folder."""
        return files.file_key(self.user_id, self.name, self.size)


def set_source(rt: Runtime, principal: Principal, source: AvatarSource, client: Client) -> Account:
    """Change the avatar's source; uploaded files are kept for switching back.

    Raises: `errors.SET_SOURCE`; AccountDisabled, TokenInvalid if the account or session ended
    meanwhile.
    """
    now = rt.clock.now()
    with rt.transaction() as session:
        account = sessions.lock_account(rt, session, principal)
        if source == (account.avatar_source or AvatarSource.NONE):
            return account
        if source is AvatarSource.UPLOADED:
            _require_files(rt, account)
        version = publishing.next_version(account)
        queries.change(session, account.id, now, avatar_source=source, avatar_version=version)
        details = {"source": source}
        users.record(rt, session, Action.USER_SET_AVATAR_SOURCE, account, client, details)
        return users.get(session, account.id)


def parsed_size(text: str) -> int:
    """Return the size that a path asks for, in pixels.

    Raises: SizeUnknown; AvatarNotFound if it is not a number.
    """
    if not text.removeprefix("-").isdecimal() or not text.isascii():
        raise AvatarNotFound
    if text not in {str(known) for known in files.SIZES}:
        raise SizeUnknown
    return int(text)


def picture(account: Account, size: int) -> Picture:
    """Return the file of the account's current avatar in a size.

    Raises: AvatarNotFound.
    """
    name = files.name_of(account)
    if account.avatar_source != AvatarSource.UPLOADED or name is None:
        raise AvatarNotFound
    return Picture(account.id, name, size)


def read(rt: Runtime, wanted: Picture) -> tuple[Picture, bytes]:
    """Return the file's content, or that of the picture that has replaced it meanwhile.

    Raises: AvatarNotFound, StorageFailed.
    """
    return _with_file(rt, wanted, Path.read_bytes)


def found(rt: Runtime, wanted: Picture) -> Picture:
    """Return the picture, or the one that has replaced it meanwhile; its file exists.

    Raises: AvatarNotFound, StorageFailed.
    """
    return _with_file(rt, wanted, Path.stat)[0]


def _with_file(rt: Runtime, wanted: Picture, use: Callable[[Path], T]) -> tuple[Picture, T]:
    for _ in range(READ_ATTEMPTS):
        path = files.path(rt.config.avatar_dir, wanted.user_id, wanted.name, wanted.size)
        with files.disk_errors():
            try:
                return wanted, files.DISK.run(use, path)
            except FileNotFoundError:
                account = users_queries.look_up_account(rt.database, wanted.user_id)
        if account is None:
            break
        newer = picture(account, wanted.size)
        if newer == wanted:
            log.error("the files of %s are missing", wanted.key)
            break
        wanted = newer
    raise AvatarNotFound


def _require_files(rt: Runtime, account: Account) -> None:
    name = files.name_of(account)
    if name is None or not on_disk(files.exists, rt.config.avatar_dir, account.id, name):
        raise NothingUploaded
