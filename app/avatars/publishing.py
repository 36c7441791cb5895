"""The steps of an upload, and what keeps disk and rows in agreement (spec 04 §3; decision A18).

Invariant: what the account's row names is complete on the disk before the row names it, and stays
there while it does. Files are put in place, and removed by a sweep, only under the lock of the
account's row; a name that a row has given up is never taken up again.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from app.audit.models import Action
from app.avatars import files, metrics, queries, render_process, staging, upload_limit
from app.avatars.disk import disk_errors, on_disk
from app.avatars.errors import (
    FileRequired,
    FileTooLarge,
    QuotaExceeded,
    StorageFailed,
    UploadReadFailed,
    VersionsUsedUp,
)
from app.avatars.staging import Place
from app.core.access import Principal
from app.core.client import Client
from app.core.multipart import BodyTooLarge, BodyUnreadable, FileTaker, MultipartBody
from app.core.runtime import Runtime
from app.sessions import service as sessions
from app.settings import keys
from app.users import queries as users_queries
from app.users import service as users
from app.users.models import Account, AvatarSource

log = logging.getLogger(__name__)

WRITE_BYTES = 256 * 1024
LONGEST_TURN_SECONDS = 0.003
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

    Raises: as `service.upload`, but for TooManyUploads.
    """
    most_bytes = rt.settings.get(keys.AVATAR_MAX_UPLOAD_BYTES)
    require_another_version(principal.account)
    seen = principal.account.avatar_version or 0
    with _place(rt, principal.user_id) as place:
        _receive(rt, body, place, most_bytes)
        rendered_bytes = _render(rt, place)
        return _publish(rt, principal, place, seen, rendered_bytes, client)


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


def require_another_version(account: Account) -> None:
    """Refuse an account whose numbers have run out.

    Raises: VersionsUsedUp.
    """
    if (account.avatar_version or 0) >= LAST_VERSION:
        log.error("the versions of the avatar of user %s are used up", account.id)
        raise VersionsUsedUp


@contextmanager
def _place(rt: Runtime, user_id: int) -> Iterator[Place]:
    place = on_disk(rt, staging.new_place, rt.config.avatar_dir, user_id)
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
    """Wait for the account's turn, then for one of all's; return how many bytes were rendered."""
    asked, began = rt.clock.monotonic(), 0.0

    def render() -> int:
        nonlocal began
        began = rt.clock.monotonic()
        return render_process.render(place)

    own_turn = upload_limit.turn(place.user_id)
    with own_turn, metrics.rendering(render_process.RENDERS_AT_ONCE), disk_errors():
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
            details = {
                "source": AvatarSource.UPLOADED,
                "version": account.avatar_version or 0,
                "applied": version is not None,
            }
            users.record(rt, session, Action.USER_UPLOAD_AVATAR, account, client, details)
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


def _require_room(account: Account, more_bytes: int) -> None:
    quota, used = account.storage_quota, account.storage_used
    if 0 < quota < used + more_bytes:
        raise QuotaExceeded(quota=quota, used=used, need=more_bytes)


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
