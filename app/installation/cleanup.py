"""Operator use cases for the installation: preparation, set-up state, cleanup, keys."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from redis import Redis
from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError

from app.audit import hourly
from app.audit import service as audit
from app.audit.models import EntityType
from app.avatars import upkeep as avatars_upkeep
from app.contact_verification import tokens as contact_tokens
from app.core import folders
from app.core.access import Operator
from app.core.config import MIGRATIONS
from app.core.errors import AppError
from app.core.runtime import Runtime
from app.core.texts import pluralized
from app.crypto.keyring import RECHECK_SECONDS, SecretKey
from app.crypto.tokens import random_fraction
from app.external_auth.models import Provider
from app.external_auth.providers import service as external_auth
from app.installation import health
from app.installation.errors import KeysFromEnvironment, KeysMissing, RotationRunning
from app.mail import service as mail
from app.mail.models import OutboxMail
from app.mfa import service as mfa
from app.own_data import erasure
from app.registration import service as registration
from app.sessions import revocation as sessions
from app.settings import keys
from app.settings import service as settings
from app.settings import upkeep as settings_upkeep
from app.settings.models import SystemConfig
from app.setup import service as setup
from app.setup.errors import AdministratorMissing
from app.setup.queries import SetupState
from app.storage_policies import service as storage
from app.store import locks
from app.store.database import reason_of
from app.store.db import Base
from app.store.key_use import KeyUse
from app.store.revisions import revisions
from app.teams import service as teams
from app.user_admin.errors import NoAdministrator
from app.users import service as users
from app.users.models import User

log = logging.getLogger(__name__)

CONFIG = EntityType.SYSTEM_CONFIG

# The areas that store encrypted secrets or keyed hashes.
AREAS_WITH_SECRETS = (settings_upkeep, mail, mfa, external_auth)
SENSITIVE = [name for name, key in keys.ALL.items() if key.is_sensitive]
# Rows that are usable only with the keys they were created with: accounts that sign in, and
# encrypted values.
USED_WITH_KEYS: tuple[tuple[type[Base], sa.ColumnElement[bool]], ...] = (
    (User, sa.true()),
    (SystemConfig, SystemConfig.key.in_(SENSITIVE) & (SystemConfig.value != "")),
    (Provider, Provider.client_secret.is_not(None)),
    (OutboxMail, OutboxMail.payload.is_not(None)),
)
# What expires, and the words for one and for several. Avatars come last: the file system may fail
# although the database works.
CLEANUPS: dict[str, tuple[Callable[[Runtime], int], str, str]] = {
    "sessions": (sessions.delete_expired, "expired session", "expired sessions"),
    "unactivated_accounts": (
        registration.delete_abandoned,
        "account that nobody activated",
        "accounts that nobody activated",
    ),
    "mail_tokens": (contact_tokens.delete_expired, "expired mail link", "expired mail links"),
    "pending_identities": (
        external_auth.delete_expired,
        "expired external identity",
        "expired external identities",
    ),
    "mails": (mail.delete_finished, "finished mail", "finished mails"),
    "teams": (teams.delete_archived, "archived team", "archived teams"),
    "erased_accounts": (
        erasure.scrub,
        "audit entry of a deleted account",
        "audit entries of deleted accounts",
    ),
    "audit_entries": (audit.delete_outdated, "outdated audit entry", "outdated audit entries"),
    "avatar_leftovers": (avatars_upkeep.cleanup, "leftover of avatars", "leftovers of avatars"),
}

CLEANUP_LOCK_KEY = "gatehouse:cleanup_turn"
ROTATION_LOCK_KEY = "gatehouse:key_rotation"
POLL_SECONDS = 30.0
RETRY_MS = 120_000
TRANSIENT_ERRORS = (RedisError, SQLAlchemyError, AppError)
STOP_SECONDS = 2.0  # a batch of deletions takes less


def create_if_missing(rt: Runtime, *, new_keys: bool = False) -> None:
    """Create the folder and the key file of a new instance; leave existing ones as they are.

    `new_keys`: the keys that the database was used with are lost for good.
    Raises: ConfigError; KeysMissing, without creating a key file: a new one would hide that the
    right one is missing, and whatever it encrypts would be unreadable once that is restored.
    """
    folders.make_instance(rt.config.instance)
    file = rt.database.file
    missing = file.path if file is not None and file.is_missing else None
    if rt.keyring.is_file and not rt.keyring.path.exists():
        if not new_keys and missing is None and _is_used(rt):
            raise KeysMissing
        rt.keyring.create()
    elif rt.keyring.is_file and missing is not None:
        log.warning("creating a database, %s, for keys that are not new: was one lost?", missing)
    rt.keyring.require()


def migrate(rt: Runtime) -> bool:
    """Migrate to this version; False, with nothing changed, if the database is newer than that.

    That is no error: the old version must start beside the new one, and again for a rollback.
    """
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    try:
        command.upgrade(config, "head")
    except CommandError:
        # Checked only now: another process may have migrated while this one waited for the lock.
        with rt.reading() as session:
            if not revisions(session).is_newer:
                raise
        return False
    return True


def _is_used(rt: Runtime) -> bool:
    """Return whether the database has been used with keys; some or all tables may be missing."""
    with rt.reading() as session:
        tables = sa.inspect(session.connection()).get_table_names()
        return any(
            session.execute(sa.select(sa.exists().select_from(model).where(used))).scalar_one()
            for model, used in USED_WITH_KEYS
            if model.__tablename__ in tables
        )


def setup_state(rt: Runtime) -> SetupState:
    """Return how far the installation is set up.

    Raises: NoAdministrator.
    """
    try:
        with rt.reading() as session:
            return setup.current_state(session)
    except AdministratorMissing:
        raise NoAdministrator from None


def bootstrap_storage(rt: Runtime, by: Operator) -> dict[str, Any]:
    """Complete the default storage route; return its ids, and how far the set-up is."""
    return {**vars(storage.bootstrap(rt, by)), "setup_state": setup_state(rt)}


def cleanup(rt: Runtime) -> dict[str, int]:
    """Delete what has expired; idempotent, and safe beside concurrent runs."""
    hourly.count_finished_hours(rt)
    users.renew_hash_kinds(rt)
    return {name: delete(rt) for name, (delete, *_) in CLEANUPS.items()}


def clean_up_now(rt: Runtime, by: Operator) -> dict[str, int]:
    """Do `cleanup` because an operator asks for it."""
    with rt.transaction() as session:
        by.recheck(session)
    cleaned = cleanup(rt)
    with rt.transaction() as session:
        audit.record_action(rt, session, by, CONFIG, "maintenance", "cleanup", **cleaned)
    return cleaned


def in_words(cleaned: dict[str, int]) -> str:
    """Return what `cleanup` deleted, for the log and the terminal."""
    return ", ".join(pluralized(count, *CLEANUPS[name][1:]) for name, count in cleaned.items())


def start_cleanup(rt: Runtime) -> Callable[[], None]:
    """Start the background cleanup; return a function that stops it."""
    stopped = threading.Event()

    def run() -> None:
        # Random polling doubles as jitter: a run starts up to POLL_SECONDS after it is due.
        while not stopped.wait(POLL_SECONDS * (1 + random_fraction()) / 2):
            try:
                health.examine(rt)
                clean_up_if_due(rt)
            except Exception:
                log.exception("clean-up failed")  # nothing restarts this thread

    thread = threading.Thread(target=run, name="housekeeping", daemon=True)
    thread.start()

    def stop() -> None:
        stopped.set()
        thread.join(timeout=STOP_SECONDS)

    return stop


def clean_up_if_due(rt: Runtime) -> bool:
    """Clean up unless a process did so within `maintenance_cleanup_interval_secs`; return whether.

    The lock is a Redis key that is never released: it expires when the next run is due, sooner if
    this one fails. Without Redis no process cleans up, which merely delays the deletions.
    """
    try:
        interval_ms = 1000 * rt.settings.get(keys.CLEANUP_INTERVAL_SECONDS)
        if not _takes_turn(rt.redis.client, interval_ms):
            return False
    except TRANSIENT_ERRORS as error:
        log.warning("clean-up was postponed: %s", reason_of(error))
        return False
    try:
        cleaned = cleanup(rt)
    except Exception as error:
        with suppress(RedisError):
            rt.redis.client.set(CLEANUP_LOCK_KEY, "failed", px=min(interval_ms, RETRY_MS))
        if not isinstance(error, TRANSIENT_ERRORS):
            raise
        log.warning("clean-up was postponed: %s", reason_of(error))
        return False
    log.info("deleted %s", in_words(cleaned))
    return True


def _takes_turn(redis: Redis, interval_ms: int) -> bool:
    """Return whether this process is to clean up.

    A turn that lasts longer than any was taken while the clock of Redis was ahead.
    """
    if redis.set(CLEANUP_LOCK_KEY, "taken", nx=True, px=interval_ms):
        return True
    left: Any = redis.pttl(CLEANUP_LOCK_KEY)
    is_of_a_clock_ahead = left > interval_ms
    if is_of_a_clock_ahead:
        redis.set(CLEANUP_LOCK_KEY, "taken", px=interval_ms)
    return bool(is_of_a_clock_ahead)


def rotate_keys(rt: Runtime, by: Operator) -> dict[str, Any]:
    """Put a new key first and re-encrypt the stored secrets under it.

    Return what may be told of that `key`, how many values were `resealed`, and how many are
    `unreadable` with any key.

    Keys from the environment are ordered there by the operator, so for those this only re-encrypts.
    The old key still decrypts and verifies, so an interrupted run does no harm.
    Raises: KeysFromEnvironment, RotationRunning.
    """
    if not rt.keyring.is_file and len(rt.keyring.keys) == 1:
        raise KeysFromEnvironment
    with _one_at_a_time(rt):
        return _rotate(rt, by)


@contextmanager
def _one_at_a_time(rt: Runtime) -> Iterator[None]:
    """Wait for the end of another rotation; without Redis they may overlap, which does no harm.

    Raises: RotationRunning.
    """
    lock = rt.redis.client.lock(ROTATION_LOCK_KEY, timeout=60, blocking_timeout=30)
    try:
        is_ours = lock.acquire()
    except RedisError:
        yield
        return
    if not is_ours:
        raise RotationRunning
    try:
        yield
    finally:
        with suppress(RedisError):
            lock.release()


def _rotate(rt: Runtime, by: Operator) -> dict[str, Any]:
    with rt.transaction() as session:
        # Concurrent rotations must see each other's key, or one of the keys would be lost.
        locks.hold(session, locks.SETTINGS)
        by.recheck(session)
        key = rt.keyring.rotate() if rt.keyring.is_file else rt.keyring.current()
        audit.record_action(rt, session, by, CONFIG, "secret_keys", "rotate", key_id=key.key_id)
        users.notify_administrators(rt, session, by, "The secret keys were rotated")
    # Let every worker reread the key file before it can meet a value encrypted under the new key.
    rt.clock.sleep(2 * RECHECK_SECONDS)
    with rt.transaction() as session:
        locks.hold(session, locks.SETTINGS)
        outcomes = [area.reseal(rt, session) for area in AREAS_WITH_SECRETS]
    resealed = sum(outcome.changed for outcome in outcomes)
    if resealed:
        settings.announce(rt)
    unreadable = sum(outcome.unreadable for outcome in outcomes)
    return {"key": _shown_key(key, key), "resealed": resealed, "unreadable": unreadable}


def list_keys(rt: Runtime) -> list[dict[str, Any]]:
    """Return what may be told of the keys, the one that signs first."""
    signing = rt.keyring.current()
    return [_shown_key(key, signing) for key in rt.keyring.keys]


def _shown_key(key: SecretKey, signing: SecretKey) -> dict[str, Any]:
    return {
        "id": key.key_id,
        "created_at": key.created_at,
        "retired_at": key.retired_at,
        "is_signing": key.key_id == signing.key_id,
    }


def key_use(rt: Runtime) -> KeyUse:
    """Return which keys the stored secrets need, and which of those are missing or wrong."""
    use = KeyUse()
    with rt.reading() as session:
        for area in AREAS_WITH_SECRETS:
            area.count_keys(rt, session, use)
    return use
