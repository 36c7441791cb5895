"""Operator use cases for the installation: set-up state, cleanup, key rotation, audit log."""

from dataclasses import dataclass, replace
from typing import Any

from app.administration.errors import KeysFromEnvironment, NoAdministrator
from app.audit import queries as audit_queries
from app.audit import service as audit
from app.audit.models import Action, EntityType, Event
from app.avatars import upkeep as avatars_upkeep
from app.contact_verification import tokens as contact_tokens
from app.core.database import locks
from app.core.database.database import Reader
from app.core.database.key_use import KeyUse
from app.core.keyring import RECHECK_SECONDS, SecretKey
from app.core.runtime import Runtime
from app.core.texts import pluralized, typed_id
from app.external_auth.providers import service as external_auth
from app.mail import service as mail
from app.mfa import upkeep as mfa_upkeep
from app.sessions import revocation as sessions
from app.settings import service as settings
from app.settings import upkeep as settings_upkeep
from app.setup import service as setup
from app.setup.errors import AdministratorMissing
from app.setup.queries import SetupState
from app.teams import service as teams
from app.users import queries as users_queries
from app.users import service as users
from app.users.errors import UserNotFound
from app.users.models import Account

# The areas that store encrypted secrets or keyed hashes.
AREAS_WITH_SECRETS = (settings_upkeep, mail, mfa_upkeep, external_auth)


@dataclass(frozen=True)
class Rotation:
    """The key that signs and encrypts from now on, and how many values were re-encrypted.

    `unreadable` counts those that were not, because no key decrypts them.
    """

    key: SecretKey
    resealed: int
    unreadable: int


@dataclass(frozen=True)
class Cleaned:
    """How many rows and leftover avatar uploads were deleted."""

    sessions: int
    audit_entries: int
    mails: int
    mail_tokens: int
    pending_identities: int
    avatar_leftovers: int
    teams: int

    def __str__(self) -> str:
        """Return the counts in words, for the log and the terminal."""
        told = (pluralized(getattr(self, name), *words) for name, words in CLEANED_WORDS.items())
        return ", ".join(told)


CLEANED_WORDS = {
    "sessions": ("expired session", "expired sessions"),
    "mail_tokens": ("expired mail link", "expired mail links"),
    "pending_identities": ("expired external identity", "expired external identities"),
    "mails": ("finished mail", "finished mails"),
    "avatar_leftovers": ("leftover of avatars", "leftovers of avatars"),
    "teams": ("archived team", "archived teams"),
    "audit_entries": ("outdated audit entry", "outdated audit entries"),
}


def setup_state(rt: Runtime) -> SetupState:
    """Return how far the installation is set up.

    Raises: NoAdministrator.
    """
    try:
        with rt.reading() as connection:
            return setup.current_state(connection)
    except AdministratorMissing:
        raise NoAdministrator from None


def cleanup(rt: Runtime) -> Cleaned:
    """Delete what has expired; idempotent, and safe beside concurrent runs."""
    return Cleaned(
        sessions=sessions.delete_expired(rt),
        audit_entries=audit.delete_outdated(rt),
        mails=mail.delete_finished(rt),
        mail_tokens=contact_tokens.delete_expired(rt),
        pending_identities=external_auth.delete_expired(rt),
        teams=teams.delete_archived(rt),
        # Last: the file system may fail although the database works.
        avatar_leftovers=avatars_upkeep.cleanup(rt),
    )


def rotate_keys(rt: Runtime) -> Rotation:
    """Put a new key first and re-encrypt the stored secrets under it.

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
    return Rotation(key, resealed, sum(outcome.unreadable for outcome in outcomes))


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
