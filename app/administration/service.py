"""Operator use cases for the installation: preparation, set-up state, cleanup, keys, audit log."""

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError

from app.administration.errors import KeysFromEnvironment, KeysMissing, NoAdministrator
from app.audit import queries as audit_queries
from app.audit import service as audit
from app.audit.models import Action, EntityType, Event
from app.avatars import upkeep as avatars_upkeep
from app.contact_verification import tokens as contact_tokens
from app.core import folders
from app.core.config import MIGRATIONS
from app.core.database import locks
from app.core.database.database import Reader, reason_of
from app.core.database.key_use import KeyUse
from app.core.database.revisions import revisions
from app.core.db import Base
from app.core.errors import AppError
from app.core.keyring import RECHECK_SECONDS, SecretKey
from app.core.runtime import Runtime
from app.core.texts import pluralized, typed_id
from app.core.tokens import random_fraction
from app.external_auth.models import Provider
from app.external_auth.providers import service as external_auth
from app.mail import service as mail
from app.mail.models import OutboxMail
from app.mfa import upkeep as mfa_upkeep
from app.sessions import revocation as sessions
from app.settings import keys
from app.settings import service as settings
from app.settings import upkeep as settings_upkeep
from app.settings.models import SystemConfig
from app.setup import service as setup
from app.setup.errors import AdministratorMissing
from app.setup.queries import SetupState
from app.teams import service as teams
from app.users import queries as users_queries
from app.users import service as users
from app.users.errors import UserNotFound
from app.users.models import Account, User

log = logging.getLogger(__name__)

# The areas that store encrypted secrets or keyed hashes.
AREAS_WITH_SECRETS = (settings_upkeep, mail, mfa_upkeep, external_auth)
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
    "mail_tokens": (contact_tokens.delete_expired, "expired mail link", "expired mail links"),
    "pending_identities": (
        external_auth.delete_expired,
        "expired external identity",
        "expired external identities",
    ),
    "mails": (mail.delete_finished, "finished mail", "finished mails"),
    "teams": (teams.delete_archived, "archived team", "archived teams"),
    "audit_entries": (audit.delete_outdated, "outdated audit entry", "outdated audit entries"),
    "avatar_leftovers": (avatars_upkeep.cleanup, "leftover of avatars", "leftovers of avatars"),
}

CLEANUP_LOCK_KEY = "gatehouse:cleanup_turn"
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
        log.warning("making a new database, %s, for keys that are not new: was one lost?", missing)
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
        with rt.reading() as reader:
            if not revisions(reader).is_newer:
                raise
        return False
    return True


def _is_used(rt: Runtime) -> bool:
    """Return whether the database has been used with keys; some or all tables may be missing."""
    with rt.reading() as connection:
        tables = sa.inspect(connection.connection()).get_table_names()
        return any(
            connection.execute(sa.select(sa.exists().select_from(model).where(used))).scalar_one()
            for model, used in USED_WITH_KEYS
            if model.__tablename__ in tables
        )


def setup_state(rt: Runtime) -> SetupState:
    """Return how far the installation is set up.

    Raises: NoAdministrator.
    """
    try:
        with rt.reading() as connection:
            return setup.current_state(connection)
    except AdministratorMissing:
        raise NoAdministrator from None


def cleanup(rt: Runtime) -> dict[str, int]:
    """Delete what has expired; idempotent, and safe beside concurrent runs."""
    return {name: delete(rt) for name, (delete, *_) in CLEANUPS.items()}


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
                clean_up_if_due(rt)
            except Exception:
                log.exception("cleaning up failed")  # nothing restarts this thread

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
        if not rt.redis.client.set(CLEANUP_LOCK_KEY, "taken", nx=True, px=interval_ms):
            return False
    except TRANSIENT_ERRORS as error:
        log.warning("cleaning up was put off: %s", reason_of(error))
        return False
    try:
        cleaned = cleanup(rt)
    except Exception as error:
        with suppress(RedisError):
            rt.redis.client.set(CLEANUP_LOCK_KEY, "failed", px=min(interval_ms, RETRY_MS))
        if not isinstance(error, TRANSIENT_ERRORS):
            raise
        log.warning("cleaning up was put off: %s", reason_of(error))
        return False
    log.info("deleted %s", in_words(cleaned))
    return True


def rotate_keys(rt: Runtime) -> tuple[SecretKey, int, int]:
    """Put a new key first and re-encrypt the stored secrets under it.

    Return that key, how many values were re-encrypted, and how many no key decrypts.

    Keys from the environment are ordered there by the operator, so for those this only re-encrypts.
    The old key still decrypts and verifies, so an interrupted run does no harm.
    Raises: KeysFromEnvironment.
    """
    if not rt.keyring.is_file and len(rt.keyring.keys) == 1:
        raise KeysFromEnvironment
    with rt.transaction() as session:
        # Concurrent rotations must see each other's key, or one of the keys would be lost.
        locks.hold(session, locks.SETTINGS)
        key = rt.keyring.rotate() if rt.keyring.is_file else rt.keyring.current()
        event = Event(
            Action.CONFIG_ACTION_EXECUTE,
            EntityType.SYSTEM_CONFIG,
            entity_name="secret_keys",
            details={"action": "rotate", "key_id": key.key_id},
        )
        audit.record(rt, session, event)
    # Let every worker reread the key file before it can meet a value encrypted under the new key.
    rt.clock.sleep(2 * RECHECK_SECONDS)
    with rt.transaction() as session:
        locks.hold(session, locks.SETTINGS)
        outcomes = [area.reseal(rt, session) for area in AREAS_WITH_SECRETS]
    resealed = sum(outcome.changed for outcome in outcomes)
    if resealed:
        settings.announce(rt)
    return key, resealed, sum(outcome.unreadable for outcome in outcomes)


def key_use(rt: Runtime) -> KeyUse:
    """Return which keys the stored secrets need, and which of those are missing or wrong."""
    use = KeyUse()
    with rt.reading() as session:
        for area in AREAS_WITH_SECRETS:
            area.count_keys(rt, session, use)
    return use


def audit_page(
    rt: Runtime, user: str | None, wanted: audit_queries.Filter, most: int
) -> list[tuple[Any, Account | None]]:
    """Return the newest matching entries, each with the account that acted, if there is one.

    `user` restricts them to one actor; None means anybody. It may also be the id 0, or the id of an
    account that no longer exists. Raises: UserNotFound.
    """
    with rt.reading() as connection:
        if user is not None:
            wanted = _filter_by_actor(rt, connection, user, wanted)
        entries = audit_queries.list_newest(connection, wanted, most)
        named = users_queries.list_named(connection, {entry.user_id for entry in entries})

    def actor(entry: Any) -> Account | None:
        account = named.get(entry.user_id)
        # SQLite reuses ids: an entry older than the account belongs to a previous one.
        is_another = account and rt.database.is_sqlite and entry.created_at < account.created_at
        return None if is_another else account

    return [(entry, actor(entry)) for entry in entries]


def _filter_by_actor(
    rt: Runtime, reader: Reader, typed: str, wanted: audit_queries.Filter
) -> audit_queries.Filter:
    try:
        account = users.named(reader, typed)
    except UserNotFound:
        user_id = typed_id(typed)
        if user_id is None:
            raise
        return replace(wanted, user_id=user_id)
    since = wanted.since
    if rt.database.is_sqlite:  # SQLite reuses the id of a deleted account
        since = max(since or account.created_at, account.created_at)
    return replace(wanted, user_id=account.id, since=since)
