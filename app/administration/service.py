"""What an operator does to the installation: its keys, its set-up, its waste."""

from dataclasses import dataclass, replace
from typing import Any

from app.administration.errors import KeysFromEnvironment, NoAdministrator
from app.audit import queries as audit_queries
from app.audit import service as audit
from app.audit.models import Action, EntityType, Event
from app.avatars import upkeep as avatars_upkeep
from app.contact_verification import upkeep as contact_verification_upkeep
from app.core.database import locks
from app.core.database.database import Reader
from app.core.database.key_use import KeyUse
from app.core.ids import typed_id
from app.core.keyring import RECHECK_SECONDS, SecretKey
from app.core.runtime import Runtime
from app.core.texts import counted
from app.external_auth import upkeep as external_auth_upkeep
from app.mail import upkeep as mail_upkeep
from app.mfa import upkeep as mfa_upkeep
from app.sessions import upkeep as sessions
from app.settings import service as settings
from app.settings import upkeep as settings_upkeep
from app.setup import service as setup
from app.setup.errors import AdministratorMissing
from app.setup.state import SetupState
from app.teams import upkeep as teams_upkeep
from app.users import queries as users_queries
from app.users import service as users
from app.users.errors import UserNotFound
from app.users.models import Account

# The areas that keep something sealed.
SEALING = (settings_upkeep, mail_upkeep, mfa_upkeep, external_auth_upkeep)


@dataclass(frozen=True)
class Rotation:
    """The key that signs and encrypts from now on, and how many values were encrypted anew.

    `unreadable` is how many are not, because no key opens them.
    """

    key: SecretKey
    resealed: int
    unreadable: int


@dataclass(frozen=True)
class Cleaned:
    """How many rows, and leftover avatar uploads, were deleted."""

    sessions: int
    audit_entries: int
    mails: int
    mail_tokens: int
    pending_identities: int
    avatar_leftovers: int
    teams: int

    def __str__(self) -> str:
        """Say it in words, for the log and the terminal."""
        told = (
            counted(self.sessions, "expired session", "expired sessions"),
            counted(self.mail_tokens, "expired mail link", "expired mail links"),
            counted(
                self.pending_identities, "expired external identity", "expired external identities"
            ),
            counted(self.mails, "finished mail", "finished mails"),
            counted(self.avatar_leftovers, "leftover of avatars", "leftovers of avatars"),
            counted(self.teams, "archived team", "archived teams"),
            counted(self.audit_entries, "outdated audit entry", "outdated audit entries"),
        )
        return ", ".join(told)


def setup_state(rt: Runtime) -> SetupState:
    """Return how far the installation is.

    Raises: NoAdministrator.
    """
    try:
        with rt.reading() as connection:
            return setup.current_state(connection)
    except AdministratorMissing:
        raise NoAdministrator from None


def cleanup(rt: Runtime) -> Cleaned:
    """Delete what has expired (spec 04 §8.5); repeatable, and safe beside other runs."""
    return Cleaned(
        sessions=sessions.delete_expired(rt),
        audit_entries=audit.delete_outdated(rt),
        mails=mail_upkeep.delete_finished(rt),
        mail_tokens=contact_verification_upkeep.delete_expired(rt),
        pending_identities=external_auth_upkeep.delete_expired(rt),
        teams=teams_upkeep.delete_archived(rt),
        # Last: their disk may fail where the database does not.
        avatar_leftovers=avatars_upkeep.cleanup(rt),
    )


def rotate_keys(rt: Runtime) -> Rotation:
    """Put a new key first and encrypt the stored secrets under it (decision A27).

    Keys of the environment are put in order there, so of those only the encryption is left to do.
    The old key still opens and verifies, so that an interrupted run harms nothing.
    Raises: KeysFromEnvironment.
    """
    if not rt.keyring.is_file and len(rt.keyring.keys) == 1:
        raise KeysFromEnvironment
    with rt.transaction() as session:
        # Of two rotations at once, each must see the other's key, or that key would be lost.
        locks.hold(session, locks.SETTINGS)
        key = rt.keyring.rotate() if rt.keyring.is_file else rt.keyring.current()
        event = Event(
            Action.CONFIG_ACTION_EXECUTE,
            EntityType.SYSTEM_CONFIG,
            entity_name="secret_keys",
            details={"action": "rotate", "key_id": key.key_id},
        )
        audit.record(rt, session, event)
    # Every worker has read the key file anew before it meets the new key in a stored value.
    rt.clock.sleep(2 * RECHECK_SECONDS)
    with rt.transaction() as session:
        locks.hold(session, locks.SETTINGS)
        outcomes = [area.reseal(rt, session) for area in SEALING]
    resealed = sum(outcome.changed for outcome in outcomes)
    if resealed:
        settings.announce(rt)
    return Rotation(key, resealed, sum(outcome.unreadable for outcome in outcomes))


def key_use(rt: Runtime) -> KeyUse:
    """Return which keys the stored secrets need, and which of those are not here."""
    use = KeyUse()
    with rt.reading_session() as session:
        for area in SEALING:
            area.count_keys(rt, session, use)
    return use


def audit_page(
    rt: Runtime, user: str | None, wanted: audit_queries.Filter, most: int
) -> list[tuple[Any, Account | None]]:
    """Return the newest entries that are wanted, each with the account whose deed it is, if any.

    `user` names whose deeds they are, None anybody's. It may be the id 0, or of an account that is
    gone. Raises: UserNotFound.
    """
    with rt.reading() as connection:
        if user is not None:
            wanted = _deeds_of(rt, connection, user, wanted)
        entries = audit_queries.list_newest(connection, wanted, most)
        named = users_queries.list_named(connection, {entry.user_id for entry in entries})

    def doer(entry: Any) -> Account | None:
        account = named.get(entry.user_id)
        # On SQLite the id may have been another account's before.
        is_another = account and rt.database.is_sqlite and entry.created_at < account.created_at
        return None if is_another else account

    return [(entry, doer(entry)) for entry in entries]


def _deeds_of(
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
    if rt.database.is_sqlite:  # which gives the next account the id of a deleted one
        since = max(since or account.created_at, account.created_at)
    return replace(wanted, user_id=account.id, since=since)
