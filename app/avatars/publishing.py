"""The steps of an upload, and what keeps files and rows consistent (spec 04 §3; decision A18).

Invariant: the files that an account's row names are complete on disk before the row names them, and
stay as long as it does. Files are put in place, and removed by a sweep, only while the account's
row is locked; a name that a row no longer holds is never reused.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from app.audit.models import Action
from app.avatars import files, metrics, queries, render_process, staging, upload_limit
from app.avatars.disk import disk_errors, run_in_disk_thread
from app.avatars.errors import (
    FileRequired,
    FileTooLarge,
    QuotaExceeded,
    StorageFailed,
    UploadReadFailed,
    VersionsExhausted,
)
from app.avatars.staging import StagedUpload
from app.core.access import Principal
from app.core.client import Client
from app.core.multipart import BodyTooLarge, BodyUnreadable, MultipartBody, MultipartFileReader
from app.core.runtime import Runtime
from app.sessions import service as sessions
from app.settings import keys
from app.users import queries as users_queries
from app.users import service as users
from app.users.models import Account, AvatarSource

log = logging.getLogger(__name__)

WRITE_BYTES = 256 * 1024
YIELD_AFTER_SECONDS = 0.003
LAST_VERSION = 2**31 - 1  # an int32 on the wire (spec 04 §1.1), and in PostgreSQL


@dataclass(frozen=True)
class Uploaded:
    """The account after an upload, and whether the upload became its avatar."""

    account: Account
    applied: bool


def publish_upload(
    rt: Runtime, principal: Principal, body: MultipartBody, client: Client
) -> Uploaded:
    """Receive an image, render it and publish it, unless another change came first.

    Raises: as `service.upload`, except TooManyUploads.
    """
    max_bytes = rt.settings.get(keys.AVATAR_MAX_UPLOAD_BYTES)
    require_version_left(principal.account)
    seen = principal.account.avatar_version or 0
    with _staged_upload(rt, principal.user_id) as staged:
        _receive(rt, body, staged, max_bytes)
        rendered_bytes = _render(rt, staged)
        return _publish(rt, principal, staged, seen, rendered_bytes, client)


def reconcile(rt: Runtime, user_id: int) -> int:
    """Remove everything in an account's folder but its current avatar; return how many entries.

    Raises: StorageFailed.
    """
    root = rt.config.avatar_dir
    with rt.transaction() as session:
        # A deleted account has no row to lock, but no upload can be published for it either.
        users_queries.lock(session, user_id)
        names = run_in_disk_thread(rt, files.list_names, root, user_id)
        account = users_queries.find_account(session, user_id)
        kept = files.name_of(account) if account else None
        return run_in_disk_thread(rt, files.remove_all_but, root, user_id, names, kept)


def require_version_left(account: Account) -> None:
    """Refuse a change if the account's avatar version cannot be incremented any more.

    Raises: VersionsExhausted.
    """
    if (account.avatar_version or 0) >= LAST_VERSION:
        log.error("the versions of the avatar of user %s are used up", account.id)
        raise VersionsExhausted


@contextmanager
def _staged_upload(rt: Runtime, user_id: int) -> Iterator[StagedUpload]:
    staged = run_in_disk_thread(rt, staging.stage_upload, rt.config.avatar_dir, user_id)
    try:
        yield staged
    finally:
        with suppress(StorageFailed):
            run_in_disk_thread(rt, staged.clear)


def _receive(rt: Runtime, body: MultipartBody, staged: StagedUpload, max_bytes: int) -> None:
    pending = bytearray()

    def flush() -> None:
        run_in_disk_thread(rt, staged.write, bytes(pending))
        pending.clear()

    def write(content: bytes) -> None:
        pending.extend(content)
        if len(pending) >= WRITE_BYTES:
            flush()

    try:
        received = MultipartFileReader(body, max_bytes, write).read(pause=_cooperative_yield(rt))
    except BodyUnreadable:
        raise UploadReadFailed from None
    except BodyTooLarge:
        raise FileTooLarge from None
    if not received:
        raise FileRequired
    flush()
    metrics.SOURCE_BYTES.observe(received)


def _cooperative_yield(rt: Runtime) -> Callable[[], None]:
    """Return a function that lets other greenlets run, but not more often than every 3 ms.

    Data that has already arrived is read without blocking, so nothing else yields. Yielding before
    every read would cost more than the reading itself.
    """
    ran_until = rt.clock.monotonic()

    def pause() -> None:
        nonlocal ran_until
        if rt.clock.monotonic() - ran_until > YIELD_AFTER_SECONDS:
            rt.clock.sleep(0)
            ran_until = rt.clock.monotonic()

    return pause


def _render(rt: Runtime, staged: StagedUpload) -> int:
    """Render once the account's lock and a slot in the pool are free; return the bytes written."""
    asked, began = rt.clock.monotonic(), 0.0

    def render() -> int:
        nonlocal began
        began = rt.clock.monotonic()
        return render_process.render(staged)

    render_lock = upload_limit.render_lock(staged.user_id)
    with render_lock, metrics.rendering(render_process.RENDERS_AT_ONCE), disk_errors():
        written = rt.renders.run(render)
    metrics.WAIT_SECONDS.observe(began - asked)
    metrics.RENDER_SECONDS.observe(rt.clock.monotonic() - began)
    return written


def _publish(
    rt: Runtime,
    principal: Principal,
    staged: StagedUpload,
    seen: int,
    rendered_bytes: int,
    client: Client,
) -> Uploaded:
    """Make the rendered files the avatar, unless another change came first (spec 04 §3.2)."""
    root, user_id, now = rt.config.avatar_dir, principal.user_id, rt.clock.now()
    name = files.new_name(seen + 1)
    began, is_in_place = rt.clock.monotonic(), False
    try:
        with rt.transaction() as session:
            before = sessions.lock_account(rt, session, principal)
            version = queries.publish(session, user_id, seen, files.key(user_id, name), now)
            if version is not None:
                _require_room(before, rendered_bytes)
            account = users.get(session, user_id)
            details = {
                "source": AvatarSource.UPLOADED,
                "version": account.avatar_version or 0,
                "applied": version is not None,
            }
            users.record(rt, session, Action.USER_UPLOAD_AVATAR, account, client, details)
            if version is not None:
                is_in_place = True
                run_in_disk_thread(rt, files.publish_folder, staged.rendered, root, user_id, name)
    except BaseException:
        if is_in_place:
            _reconcile_after_failure(rt, staged)
        raise
    metrics.PUBLISH_SECONDS.observe(rt.clock.monotonic() - began)
    if version is not None:
        _remove_replaced(rt, before)
    return Uploaded(account, version is not None)


def _require_room(account: Account, more_bytes: int) -> None:
    quota, used = account.storage_quota, account.storage_used
    if 0 < quota < used + more_bytes:
        raise QuotaExceeded(quota=quota, used=used, need=more_bytes)


def _reconcile_after_failure(rt: Runtime, staged: StagedUpload) -> None:
    """Reconcile files that are in place with a commit that failed or whose outcome is unknown.

    If that fails too, say because the database is down, leave it to a later sweep.
    """
    try:
        reconcile(rt, staged.user_id)
    except Exception:
        log.warning("the avatar files of user %s are left to the next cleanup", staged.user_id)
        staged.keep()


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
