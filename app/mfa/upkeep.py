"""What an operator does with second factors as a whole."""

from sqlalchemy.orm import Session

from app.core.database import bulk
from app.core.runtime import Runtime
from app.mfa import queries
from app.mfa.service import sealed_for


def reseal(rt: Runtime, session: Session) -> int:
    """Encrypt the secrets of TOTP factors under the newest key; return how many changed.

    What cannot be decrypted is left alone: a key that comes back may still open it. Recovery codes
    are not known here, so theirs are kept, and verified, under the key they were made with.
    """
    changed = last_id = 0
    while batch := queries.list_sealed(session, last_id, bulk.BATCH_ROWS):
        for factor_id, user_id, sealed in batch:
            fresh = rt.secret_box.resealed(sealed, sealed_for(user_id))
            if fresh is not None:
                changed += queries.replace_secret(session, factor_id, sealed, fresh)
            last_id = factor_id
    return changed
