"""Use cases of avatars, the steps of an upload, and what keeps files and rows consistent.

Invariant: the files that an account's row names are complete on disk before the row names them, and
stay as long as it does. Files are put in place, and removed by a sweep, only while the account's
row is locked; a name that a row no longer holds is never reused.
"""

import logging
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import BoundedSemaphore, Lock
from typing import TypeVar

from prometheus_client import Counter, Gauge, Histogram

from app.audit.models import Action
from app.avatars import files, queries, render_process
from app.avatars.errors import (
    AvatarNotFound,
    FileRequired,
    FileTooLarge,
    NothingUploaded,
    QuotaExceeded,
    SizeUnknown,
    StorageFailed,
    TooManyUploads,
    UploadReadFailed,
    VersionsExhausted,
)
from app.avatars.files import Staged, on_disk
from app.core.access import Principal, Program
from app.core.client import Client
from app.core.errors import AppError
from app.core.multipart import BodyTooLarge, BodyUnreadable, MultipartBody
from app.core.runtime import Runtime
from app.sessions import service as sessions
from app.settings import keys
from app.users import queries as users_queries
from app.users import service as users
from app.users.models import Account, AvatarSource

T = TypeVar("T")

log = logging.getLogger(__name__)

UPLOADS = Counter("avatar_uploads_total", "Uploads by what came of them.", ["outcome"])
REJECTIONS = Counter("avatar_rejections_total", "Uploads refused, by code.", ["code"])
SOURCE_BYTES = Histogram(
    "avatar_source_bytes",
    "Sizes of uploaded image files.",
    buckets=(16_384, 65_536, 262_144, 1_048_576, 4_194_304, 10_485_760, 16_777_216),
)
RENDER_SECONDS = Histogram("avatar_render_duration_seconds", "Time to decode, resize and encode.")
WAIT_SECONDS = Histogram("avatar_render_wait_duration_seconds", "Time an upload waited in line.")
PUBLISH_SECONDS = Histogram("avatar_publish_duration_seconds", "Time to publish an avatar.")
WAITING = Gauge(
    "avatar_render_waiting", "Uploads waiting to be rendered.", multiprocess_mode="livesum"
)
ACTIVE = Gauge("avatar_render_active", "Uploads being rendered.", multiprocess_mode="livesum")

# Export every series as 0 from the start: the increase to a series' first sample is never counted.
for _outcome in ("applied", "superseded", "failed"):
    UPLOADS.labels(_outcome)

LAST_VERSION = 2**31 - 1  # an int32 on the wire, and in PostgreSQL
# Of one account, per process: an upload may take hours, during which it occupies a
# connection and the disk space of what has arrived.
MAX_UPLOADS = 20
RETRY_SECONDS = 10
RENDERS_AT_ONCE = 2  # per process; more uploads wait, and none is rejected
# How many times to try a read while concurrent uploads keep replacing the files.
READ_ATTEMPTS = 5

_uploads: defaultdict[int, int] = defaultdict(int)
# Serialize the renders of each account, or one that uploads many images would starve all others. An
# entry exists only while its account has uploads.
_turns: dict[int, Lock] = {}
_lock = Lock()
_slots = BoundedSemaphore(RENDERS_AT_ONCE)


@dataclass(frozen=True)
class Uploaded:
    """The account after an upload, and whether the upload became its avatar."""

    account: Account
    applied: bool


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


def upload(
    rt: Runtime, principal: Principal | Program, body: MultipartBody, client: Client
) -> Uploaded:
    """Receive an image, render it and make it the account's avatar.

    It is applied only if the avatar has not changed since the request was authenticated. Otherwise,
    and on every failure, the account keeps the avatar it has and the upload is discarded.
    Raises: errors.UPLOAD; AccountDisabled, TokenInvalid if the account or session ended meanwhile.
    """
    max_bytes = rt.settings.get(keys.AVATAR_MAX_UPLOAD_BYTES)
    try:
        version = next_version(principal.account)
        with _upload_slot(principal.user_id), _staged_upload(rt, principal.user_id) as staged:
            _receive(body, staged, max_bytes)
            rendered_bytes = _render(rt, staged)
            uploaded = _publish(rt, principal, staged, version, rendered_bytes, client)
    except Exception as error:
        UPLOADS.labels("failed").inc()
        if isinstance(error, AppError):
            REJECTIONS.labels(error.code.value).inc()
        raise
    UPLOADS.labels("applied" if uploaded.applied else "superseded").inc()
    return uploaded


def set_source(
    rt: Runtime, principal: Principal | Program, source: AvatarSource, client: Client
) -> Account:
    """Change the avatar's source; uploaded files are kept for switching back.

    Raises: errors.SET_SOURCE; AccountDisabled, TokenInvalid if the account or session ended
    meanwhile.
    """
    now = rt.clock.now()
    with rt.transaction() as session:
        account = sessions.lock_account(rt, session, principal)
        if source == (account.avatar_source or AvatarSource.NONE):
            return account
        if source is AvatarSource.UPLOADED:
            _require_files(rt, account)
        version = next_version(account)
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


def read(rt: Runtime, file: Picture) -> tuple[Picture, bytes]:
    """Return the file's content, or that of the picture that has replaced it meanwhile.

    Raises: AvatarNotFound, StorageFailed.
    """
    return _with_file(rt, file, Path.read_bytes)


def found(rt: Runtime, file: Picture) -> Picture:
    """Return the picture, or the one that has replaced it meanwhile; its file exists.

    Raises: AvatarNotFound, StorageFailed.
    """
    return _with_file(rt, file, Path.stat)[0]


def reconcile(rt: Runtime, user_id: int) -> int:
    """Remove everything in an account's folder but its current avatar; return how many entries.

    Raises: StorageFailed.
    """
    root = rt.config.avatar_dir
    with rt.transaction() as session:
        # A deleted account has no row to lock, but no upload can be published for it either.
        users_queries.lock(session, user_id)
        names = on_disk(files.list_names, root, user_id)
        account = users_queries.find_account(session, user_id)
        kept = files.name_of(account) if account else None
        return on_disk(files.remove, root, user_id, [name for name in names if name != kept])


def next_version(account: Account) -> int:
    """Return the version of the account's avatar after a change.

    Raises: VersionsExhausted.
    """
    version = account.avatar_version or 0
    if version >= LAST_VERSION:
        log.error("the versions of the avatar of user %s are used up", account.id)
        raise VersionsExhausted
    return version + 1


@contextmanager
def _upload_slot(user_id: int) -> Iterator[None]:
    with _lock:
        if _uploads[user_id] >= MAX_UPLOADS:
            raise TooManyUploads(retry_after=RETRY_SECONDS)
        _uploads[user_id] += 1
        _turns.setdefault(user_id, Lock())
    try:
        yield
    finally:
        with _lock:
            _uploads[user_id] -= 1
            if not _uploads[user_id]:
                del _uploads[user_id], _turns[user_id]


@contextmanager
def _staged_upload(rt: Runtime, user_id: int) -> Iterator[Staged]:
    staged = on_disk(files.stage, rt.config.avatar_dir, user_id)
    try:
        yield staged
    finally:
        with suppress(StorageFailed):
            on_disk(staged.clear)


def _receive(body: MultipartBody, staged: Staged, max_bytes: int) -> None:
    with files.disk_errors(), staged.source.open("xb") as file:
        try:
            received = body.save_file(max_bytes, file.write)
        except BodyUnreadable:
            raise UploadReadFailed from None
        except BodyTooLarge:
            raise FileTooLarge from None
    if not received:
        raise FileRequired
    SOURCE_BYTES.observe(received)


def _render(rt: Runtime, staged: Staged) -> int:
    """Render once it is the account's turn and a slot is free; return the bytes written."""
    asked = rt.clock.monotonic()
    with ExitStack() as turn:
        with WAITING.track_inprogress():
            turn.enter_context(_turns[staged.user_id])
            turn.enter_context(_slots)
        began = rt.clock.monotonic()
        with ACTIVE.track_inprogress(), files.disk_errors():
            written = render_process.render(staged.source, staged.rendered)
    WAIT_SECONDS.observe(began - asked)
    RENDER_SECONDS.observe(rt.clock.monotonic() - began)
    return written


def _publish(
    rt: Runtime,
    principal: Principal | Program,
    staged: Staged,
    version: int,
    rendered_bytes: int,
    client: Client,
) -> Uploaded:
    """Make the rendered files the avatar of this version, unless another change came first."""
    root, user_id = rt.config.avatar_dir, principal.user_id
    name = files.new_name(version)
    began, is_in_place = rt.clock.monotonic(), False
    try:
        with rt.transaction() as session:
            before = sessions.lock_account(rt, session, principal)
            is_first = (before.avatar_version or 0) == version - 1
            if is_first:
                _require_room(before, rendered_bytes)
                queries.change(
                    session,
                    user_id,
                    rt.clock.now(),
                    avatar_source=AvatarSource.UPLOADED,
                    avatar_key=files.key(user_id, name),
                    avatar_version=version,
                )
            account = users.get(session, user_id)
            details = {
                "source": AvatarSource.UPLOADED,
                "version": account.avatar_version or 0,
                "applied": is_first,
            }
            users.record(rt, session, Action.USER_UPLOAD_AVATAR, account, client, details)
            if is_first:
                is_in_place = True
                on_disk(files.publish_folder, staged.rendered, root, user_id, name)
    except BaseException:
        if is_in_place:
            _reconcile_after_failure(rt, staged)
        raise
    PUBLISH_SECONDS.observe(rt.clock.monotonic() - began)
    if is_first:
        _remove_replaced(rt, before)
    return Uploaded(account, is_first)


def _require_room(account: Account, more_bytes: int) -> None:
    quota, used = account.storage_quota, account.storage_used
    if 0 < quota < used + more_bytes:
        raise QuotaExceeded(quota=quota, used=used, need=more_bytes)


def _reconcile_after_failure(rt: Runtime, staged: Staged) -> None:
    """Reconcile files that are in place with a commit that failed or whose outcome is unknown.

    If that fails too, say because the database is down, leave it to a later sweep.
    """
    try:
        reconcile(rt, staged.user_id)
    except Exception:
        log.warning("the avatar files of user %s are left to the next cleanup", staged.user_id)
        staged.is_kept = True


def _remove_replaced(rt: Runtime, before: Account) -> None:
    name = files.name_of(before)
    try:
        if name is not None:
            files.DISK.run(files.remove, rt.config.avatar_dir, before.id, [name])
    except OSError as error:
        log.warning("a replaced avatar is left to the next cleanup: %s", error)


def _with_file(rt: Runtime, file: Picture, use: Callable[[Path], T]) -> tuple[Picture, T]:
    for _ in range(READ_ATTEMPTS):
        path = files.path(rt.config.avatar_dir, file.user_id, file.name, file.size)
        with files.disk_errors():
            try:
                return file, files.DISK.run(use, path)
            except FileNotFoundError:
                with rt.reading() as session:
                    account = users_queries.find_account(session, file.user_id)
        if account is None:
            break
        newer = picture(account, file.size)
        if newer == file:
            log.error("the files of %s are missing", file.key)
            break
        file = newer
    raise AvatarNotFound


def _require_files(rt: Runtime, account: Account) -> None:
    name = files.name_of(account)
    if name is None or not on_disk(files.exists, rt.config.avatar_dir, account.id, name):
        raise NothingUploaded
