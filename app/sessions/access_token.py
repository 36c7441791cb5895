"""Access tokens: signed claims that name a session."""

from datetime import datetime, timedelta

from app.core.access import TokenExpired, TokenInvalid
from app.core.keyring import Keyring, SignedTokens, TokenForged
from app.core.tokens import random_uuid

LEEWAY_SECONDS = 5


def issue(keyring: Keyring, session_id: str, user_id: int, now: datetime, life: timedelta) -> str:
    """Return a token that is valid for `life`."""
    issued_at = int(now.timestamp())
    return _tokens(keyring).sign(
        {
            "sub": str(user_id),
            "sid": session_id,
            "jti": random_uuid(),
            "iat": issued_at,
            "exp": issued_at + int(life.total_seconds()),
        }
    )


def read(
    keyring: Keyring, token: str, now: datetime, *, ignore_expiry: bool = False
) -> tuple[str, int]:
    """Return a token's session and when it expires, in Unix seconds.

    Raises: TokenInvalid; TokenExpired, unless `ignore_expiry`.
    """
    try:
        claims = _tokens(keyring).verified(token)
        session_id, expires_at = str(claims["sid"]), int(claims["exp"])
    except (TokenForged, KeyError, ValueError, TypeError):
        raise TokenInvalid from None
    if not ignore_expiry and now.timestamp() > expires_at + LEEWAY_SECONDS:
        raise TokenExpired
    return session_id, expires_at


def _tokens(keyring: Keyring) -> SignedTokens:
    return SignedTokens(keyring, "access-token")
