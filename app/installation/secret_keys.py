"""The secret keys: a new one, which there are, and which of them are needed."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from redis.exceptions import RedisError

from app.audit import service as audit
from app.audit.models import EntityType
from app.core.access import Operator
from app.core.runtime import Runtime
from app.crypto.keyring import RECHECK_SECONDS, SecretKey
from app.external_auth.providers import service as external_auth
from app.installation.errors import KeysFromEnvironment, RotationRunning
from app.mail import service as mail
from app.mfa import service as mfa
from app.settings import service as settings
from app.settings import upkeep as settings_upkeep
from app.store import locks
from app.store.key_use import KeyUse
from app.users import password_secrets
from app.users import service as users

CONFIG = EntityType.SYSTEM_CONFIG

# The areas that store encrypted secrets or keyed hashes.
AREAS_WITH_SECRETS = (settings_upkeep, mail, mfa, external_auth, password_secrets)

ROTATION_LOCK_KEY = "gatehouse:key_rotation"


def rotate_keys(rt: Runtime, by: Operator) -> dict[str, Any]:
    """Put a new key first and re-encrypt the stored secrets under it.

    Return the public facts about that `key`, how many values were `resealed`, and how many are
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
    """Wait for the end of another rotation; without Redis they may overlap, which does no harm."""
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
    """Return the public facts about the keys, the one that signs first."""
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
