"""Access tokens: signed claims that name a session."""

from datetime import datetime, timedelta

from app.core.access import TokenExpired, TokenInvalid
from app.crypto.keyring import Keyring, TokenForged
from app.crypto.tokens import random_uuid

PURPOSE = "access-token"
LEEWAY_SECONDS = 5


def issue(keyring: Keyring, session_id: str, user_id: int, now: datetime, life: timedelta) -> str:
    """Return a token that is valid for `life`."""
    issued_at = int(now.timestamp())
    claims = {
        "sub": str(user_id),
        "sid": session_id,
        "jti": random_uuid(),
        "iat": issued_at,
        "exp": issued_at + int(life.total_seconds()),
    }
    return keyring.sign(claims, PURPOSE)


def read(
    keyring: Keyring, token: str, now: datetime, *, ignore_expiry: bool = False
) -> tuple[str, int]:
    """Return a token's session and when it expires, in Unix seconds.

    Raises: TokenInvalid; TokenExpired, unless `ignore_expiry`.
    """
    try:
        claims = keyring.verified(token, PURPOSE)
        session_id, expires_at = str(claims["sid"]), int(claims["exp"])
        issued_at = int(claims["iat"])
    except (TokenForged, KeyError, ValueError, TypeError):
        raise TokenInvalid from None
    seconds = now.timestamp()
    # One of a clock that was ahead would live longer than tokens do; a refresh gives a right one.
    is_of_now = issued_at - LEEWAY_SECONDS <= seconds <= expires_at + LEEWAY_SECONDS
    if not ignore_expiry and not is_of_now:
        raise TokenExpired
    return session_id, expires_at
