"""What services whose accounts were imported mixed into passwords: peppers, signer keys.

Each is kept encrypted, apart from the hashes that need it, until the last of those is replaced.
"""

from collections.abc import Collection
from datetime import timedelta

from sqlalchemy.orm import Session

from app.core.runtime import Runtime
from app.crypto.foreign_hashes import SECRET_ID_BYTES
from app.crypto.secret_box import Resealed, Resealer, SecretBox, SecretUnreadable
from app.crypto.tokens import random_bytes
from app.store import locks
from app.store.database import Database
from app.store.key_use import KeyUse
from app.users import queries
from app.users.models import PasswordSecret

# An import may be running, and all its accounts so far may have signed in.
KEPT_UNUSED = timedelta(days=1)


def find(database: Database, box: SecretBox, secret_id: str) -> bytes | None:
    """Return a secret; None if there is none, or no key opens it."""
    with database.reading() as session:
        row = session.get(PasswordSecret, secret_id)
    return _opened(box, row) if row else None


def keep(rt: Runtime, session: Session, secrets: Collection[bytes]) -> dict[bytes, str]:
    """Keep these secrets, each once however often it is imported; return their ids."""
    if not secrets:
        return {}
    locks.hold(session, locks.SETTINGS)
    known = {_opened(rt.secret_box, row): row.id for row in queries.list_password_secrets(session)}
    for secret in secrets:
        if secret not in known:
            known[secret] = _add(rt, session, secret)
    return {secret: known[secret] for secret in secrets}


def _opened(box: SecretBox, row: PasswordSecret) -> bytes | None:
    try:
        return bytes.fromhex(box.open(row.sealed, row.row_name))
    except SecretUnreadable:
        return None


def _add(rt: Runtime, session: Session, secret: bytes) -> str:
    row = PasswordSecret(id=random_bytes(SECRET_ID_BYTES).hex(), created_at=rt.clock.now())
    row.sealed = rt.secret_box.seal(secret.hex(), row.row_name)
    session.add(row)
    session.flush()
    return row.id


def count_accounts(rt: Runtime) -> int:
    """Return how many accounts have a password that needs one of them."""
    with rt.reading() as session:
        rows = queries.list_password_secrets(session)
        return queries.count_with_secret(session) if rows else 0


def delete_unused(rt: Runtime) -> int:
    """Delete those that no password needs any more; return how many."""
    before = rt.clock.now() - KEPT_UNUSED
    with rt.transaction() as session:
        locks.hold(session, locks.SETTINGS)  # an import may be about to use one again
        return queries.delete_unused_password_secrets(session, before)


def reseal(rt: Runtime, session: Session) -> Resealed:
    """Re-encrypt them under the newest key."""
    resealer, changed = Resealer(rt.secret_box), 0
    for row in queries.list_password_secrets(session):
        fresh = resealer.resealed(row.sealed, row.row_name)
        if fresh is not None:
            row.sealed = fresh
            changed += 1
    return Resealed(changed, resealer.unreadable)


def count_keys(rt: Runtime, session: Session, use: KeyUse) -> None:
    """Count them by the key they are encrypted with."""
    rows = queries.list_password_secrets(session)
    use.add_secrets(rt.secret_box, {row.row_name: row.sealed for row in rows})
