"""Use cases of the avatar (spec 04 §3; decisions A18, A19).

Invariant: what the account's row names is complete on the disk before the row names it, and stays
there while it does. Files are put in place, and removed by a sweep, only under the lock of the
account's row; a name that a row has given up is never taken up again.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from app.audit.models import Action
from app.avatars import files, metrics, queries, renderer, staging, under_way
from app.avatars.errors import (
    AvatarNotFound,
    FileRequired,
    FileTooLarge,
    NothingUploaded,
    QuotaExceeded,
    SizeUnknown,
    StorageFailed,
    UploadReadFailed,
    VersionsUsedUp,
)
from app.avatars.staging import Place
from app.core.client import Client
from app.core.errors import AppError
from app.core.multipart import BodyTooLarge, BodyUnreadable, FileTaker, MultipartBody
from app.core.runtime import Runtime
from app.sessions import service as sessions
from app.settings import keys
from app.users import queries as users_queries
from app.users import service as users
from app.users.models import Account, AvatarSource
from app.web.principal import Principal

T = TypeVar("T")

log = logging.getLogger(__name__)

WRITE_BYTES = 256 * 1024
LONGEST_TURN_SECONDS = 0.003
# How often a reader looks again when the files it was sent to have just been replaced.
READ_ATTEMPTS = 5
LAST_VERSION = 2**31 - 1  # an int32 on the wire (spec 04 §1.1), and in PostgreSQL


@dataclass(frozen=True)
class Uploaded:
    """The account after an upload, and whether the upload became its avatar."""

    account: Account
    applied: bool


@dataclass(frozen=True)
class Picture:
    """One published file: `name` is never given to another content."""

    user_id: int
    name: str
    size: int

    @property
    def etag(self) -> str:
        """What tells it from every other."""
        return f"{self.name}-{self.size}"

    @property
    def key(self) -> str:
        """Its path below the folder of the avatars."""
        return f"{files.key(self.user_id, self.name)}/{self.size}.webp"


def upload(rt: Runtime, principal: Principal, body: MultipartBody, client: Client) -> Uploaded:
    """Receive an image, render it and make it the account's avatar.

    It is applied only if the avatar was not changed since the request came in; else, and on every
    failure, the account keeps what it has, and nothing of the upload is left.
    Raises: TooManyUploads, UploadReadFailed, FileRequired, FileTooLarge, FileTypeNotAllowed,
    EmptyImage, ImageTooLarge, ProcessorUnavailable, RenderFailed, StorageFailed, QuotaExceeded,
    VersionsUsedUp; AccountDisabled, TokenInvalid when that happened meanwhile.
    """
    try:
        with under_way.counted(principal.user_id):
            uploaded = _upload(rt, principal, body, client)
    except Exception as error:
        metrics.UPLOADS.labels("failed").inc()
        if isinstance(error, AppError):
            metrics.REJECTIONS.labels(error.code.value).inc()
        raise
    metrics.UPLOADS.labels("applied" if uploaded.applied else "superseded").inc()
    return uploaded


def set_source(rt: Runtime, principal: Principal, source: AvatarSource, client: Client) -> Account:
    """Change where the avatar comes from; uploaded files stay, for switching back.

    Raises: NothingUploaded, StorageFailed, VersionsUsedUp; AccountDisabled, TokenInvalid when that
    happened meanwhile.
    """
    now = rt.clock.now()
    with rt.transaction() as session:
        account = sessions.hold(rt, session, principal)
        if source == (account.avatar_source or AvatarSource.NONE):
            return account
        if source is AvatarSource.UPLOADED:
            _require_files(rt, account)
        _require_another_version(account)
        queries.set_source(session, account.id, source, now)
        told = {"source": source}
        users.record(rt, session, Action.USER_SET_AVATAR_SOURCE, account, client, told)
        return users.get(session, account.id)


def picture(account: Account, size: str) -> Picture:
    """Return which file an account shows in a size.

    Raises: SizeUnknown; AvatarNotFound, also for what is no number (decision E9).
    """
    name = files.name_of(account)
    if not size.removeprefix("-").isdecimal() or not size.isascii():
        raise AvatarNotFound
    if size not in {str(known) for known in files.SIZES}:
        raise SizeUnknown
    if account.avatar_source != AvatarSource.UPLOADED or name is None:
        raise AvatarNotFound
    return Picture(account.id, name, int(size))


def read(rt: Runtime, wanted: Picture) -> tuple[Picture, bytes]:
    """Return the file's content, or that of the picture which has replaced it meanwhile.

    Raises: AvatarNotFound, StorageFailed.
    """
    return _with_file(rt, wanted, rt.cached_files.read)


def found(rt: Runtime, wanted: Picture) -> Picture:
    """Return the picture, or the one that has replaced it meanwhile, whose file is there.

    Raises: AvatarNotFound, StorageFailed.
    """
    return _with_file(rt, wanted, rt.cached_files.require)[0]


def reconcile(rt: Runtime, user_id: int) -> int:
    """Remove what lies in an account's folder and is not its avatar; return how many folders.

    Raises: StorageFailed.
    """
    root = rt.config.avatar_dir
    with rt.transaction() as session:
        # Without an account there is no row to lock, and nobody who could publish either.
        users_queries.lock(session, user_id)
        names = on_disk(rt, files.list_names, root, user_id)
        account = users_queries.find_account(session, user_id)
        kept = files.name_of(account) if account else None
        return on_disk(rt, files.remove_all_but, root, user_id, names, kept)


def _with_file(rt: Runtime, wanted: Picture, use: Callable[[Path], T]) -> tuple[Picture, T]:
    for _ in range(READ_ATTEMPTS):
        path = files.path(rt.config.avatar_dir, wanted.user_id, wanted.name, wanted.size)
        try:
            return wanted, use(path)
        except FileNotFoundError:
            account = users_queries.find_by_id(rt.database, wanted.user_id)
        except OSError as error:
            raise _storage_failed(error) from error
        if account is None:
            break
        newer = picture(account, str(wanted.size))
        if newer == wanted:
            log.error("the files of %s are missing", wanted.key)
            break
        wanted = newer
    raise AvatarNotFound


# --- the steps of an upload --------------------------------------------------------------------


def _upload(rt: Runtime, principal: Principal, body: MultipartBody, client: Client) -> Uploaded:
    most_bytes = rt.settings.get(keys.AVATAR_MAX_UPLOAD_BYTES)
    _require_another_version(principal.account)
    seen = principal.account.avatar_version or 0
    with _place(rt, principal.user_id) as place:
        _receive(rt, body, place, most_bytes)
        rendered_bytes = _render(rt, place)
        return _publish(rt, principal, place, seen, rendered_bytes, client)


@contextmanager
def _place(rt: Runtime, user_id: int) -> Iterator[Place]:
    place = on_disk(rt, staging.claim, rt.config.avatar_dir, user_id)
    try:
        yield place
    finally:
        with suppress(StorageFailed):
            on_disk(rt, place.clear)


def _receive(rt: Runtime, body: MultipartBody, place: Place, most_bytes: int) -> None:
    pending = bytearray()

    def flush() -> None:
        on_disk(rt, place.write, bytes(pending))
        pending.clear()

    def write(content: bytes) -> None:
        pending.extend(content)
        if len(pending) >= WRITE_BYTES:
            flush()

    try:
        received = FileTaker(body, most_bytes, write).take(pause=_considerately(rt))
    except BodyUnreadable:
        raise UploadReadFailed from None
    except BodyTooLarge:
        raise FileTooLarge from None
    if not received:
        raise FileRequired
    flush()
    metrics.SOURCE_BYTES.observe(received)


def _considerately(rt: Runtime) -> Callable[[], None]:
    """Return what lets others run, if that was long ago: what has arrived is read without waiting.

    To do so between any two reads would cost more than the reading.
    """
    ran_until = rt.clock.monotonic()

    def pause() -> None:
        nonlocal ran_until
        if rt.clock.monotonic() - ran_until > LONGEST_TURN_SECONDS:
            rt.clock.sleep(0)
            ran_until = rt.clock.monotonic()

    return pause


def _render(rt: Runtime, place: Place) -> int:
    """Wait for a turn and render; return how many bytes both files have."""
    asked, began = rt.clock.monotonic(), 0.0

    def render() -> int:
        nonlocal began
        began = rt.clock.monotonic()
        return renderer.render(place)

    with metrics.rendering(renderer.RENDERS_AT_ONCE), _disk_errors():
        written = rt.renders.run(render)
    metrics.WAIT_SECONDS.observe(began - asked)
    metrics.RENDER_SECONDS.observe(rt.clock.monotonic() - began)
    return written


def _publish(
    rt: Runtime,
    principal: Principal,
    place: Place,
    seen: int,
    rendered_bytes: int,
    client: Client,
) -> Uploaded:
    """Make what was rendered the avatar, unless another change came first (spec 04 §3.2)."""
    root, user_id, now = rt.config.avatar_dir, principal.user_id, rt.clock.now()
    name = files.new_name(seen + 1)
    began, is_in_place = rt.clock.monotonic(), False
    try:
        with rt.transaction() as session:
            before = sessions.hold(rt, session, principal)
            version = queries.publish(session, user_id, seen, files.key(user_id, name), now)
            if version is not None:
                _require_room(before, rendered_bytes)
            account = users.get(session, user_id)
            told = {
                "source": AvatarSource.UPLOADED,
                "version": account.avatar_version or 0,
                "applied": version is not None,
            }
            users.record(rt, session, Action.USER_UPLOAD_AVATAR, account, client, told)
            if version is not None:
                is_in_place = True
                on_disk(rt, files.put_in_place, place.rendered, root, user_id, name)
    except BaseException:
        if is_in_place:
            _sort_out(rt, place)
        raise
    metrics.PUBLISH_SECONDS.observe(rt.clock.monotonic() - began)
    if version is not None:
        _remove_replaced(rt, before)
    return Uploaded(account, version is not None)


def _require_another_version(account: Account) -> None:
    if (account.avatar_version or 0) >= LAST_VERSION:
        log.error("the versions of the avatar of user %s are used up", account.id)
        raise VersionsUsedUp


def _require_room(account: Account, more_bytes: int) -> None:
    needed = account.storage_used + more_bytes
    if 0 < account.storage_quota < needed:
        raise QuotaExceeded


def _require_files(rt: Runtime, account: Account) -> None:
    name = files.name_of(account)
    if name is None or not on_disk(rt, files.are_there, rt.config.avatar_dir, account.id, name):
        raise NothingUploaded


def _sort_out(rt: Runtime, place: Place) -> None:
    """After files were put in place, and the commit failed or nobody knows: row and files agree.

    Where the database cannot tell now, a later sweep asks it.
    """
    try:
        reconcile(rt, place.user_id)
    except Exception:
        log.warning("the avatar files of user %s are left to the next cleanup", place.user_id)
        place.keep()


def _remove_replaced(rt: Runtime, before: Account) -> None:
    name = files.name_of(before)
    if name is None:
        return
    try:
        rt.disk.run(files.remove, rt.config.avatar_dir, before.id, name)
    except FileNotFoundError:
        return
    except OSError as error:
        log.warning("a replaced avatar is left to the next cleanup: %s", error)


def on_disk(rt: Runtime, function: Callable[..., T], *arguments: Any) -> T:
    """Run what waits for the disk in a native thread.

    Raises: StorageFailed.
    """
    with _disk_errors():
        return rt.disk.run(function, *arguments)


@contextmanager
def _disk_errors() -> Iterator[None]:
    """Log a failure of the disk and raise StorageFailed for it."""
    try:
        yield
    except OSError as error:
        raise _storage_failed(error) from error


def _storage_failed(error: OSError) -> StorageFailed:
    log.error("the folder of the avatars failed: %s", error)
    return StorageFailed()
