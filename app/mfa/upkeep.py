"""Key rotation for the stored secrets of all second factors."""

from sqlalchemy.orm import Session

from app.core.database import bulk
from app.core.database.key_use import KeyUse
from app.core.runtime import Runtime
from app.core.secret_box import Resealed, Resealer
from app.mfa import queries
from app.mfa.models import MfaFactor, MfaRecoveryCode
from app.mfa.service import secret_row_name


def reseal(rt: Runtime, session: Session) -> Resealed:
    """Re-encrypt the secrets of TOTP factors under the newest key.

    A secret that cannot be decrypted is left alone: a restored key may still open it. Recovery
    codes are stored only as hashes, which stay, and are verified, under the key that made them.
    """
    resealer, changed, last_id = Resealer(rt.secret_box), 0, 0
    while batch := queries.list_next(session, last_id, bulk.BATCH_ROWS):
        for factor in batch:
            fresh = resealer.resealed(factor.secret, secret_row_name(factor.user_id))
            if fresh is not None:
                changed += queries.replace_secret(session, factor.id, factor.secret, fresh)
            last_id = factor.id
    return Resealed(changed, resealer.unreadable)


def count_keys(rt: Runtime, session: Session, use: KeyUse) -> None:
    """Count the secrets of TOTP factors, and unused recovery codes, by the key they need."""
    use.add_column(rt.secret_box, session, MfaFactor.secret, MfaFactor.user_id, secret_row_name)
    unused = MfaRecoveryCode.used_at.is_(None)
    use.add_hashes(rt.secret_box, session, MfaRecoveryCode.code_hash, unused)
