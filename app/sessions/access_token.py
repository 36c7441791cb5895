"""Access tokens: JWTs that carry their session's id (decisions A7, E4).

Invariant: only a key of the keyring's newest generation signs, and a retired one is believed no
longer than the longest token it can have signed.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

import jwt

from app.core.keyring import Keyring
from app.core.tokens import random_uuid
from app.sessions.errors import TokenExpired, TokenInvalid

ALGORITHM = "HS256"
PURPOSE = "access-token"
LEEWAY = timedelta(seconds=5)
LONGEST_LIFE = timedelta(days=1)
LONGEST_TOKEN = 2048

# Expiry is judged by our own clock, and by `read` alone.
_decoder = jwt.PyJWT(
    {"verify_exp": False, "verify_iat": False, "verify_nbf": False, "require": ["exp", "sid"]}
)


@dataclass(frozen=True, slots=True)
class AccessClaims:
    """What a valid token says; `expires_at` in Unix seconds."""

    session_id: str
    expires_at: int


def issue(keyring: Keyring, session_id: str, user_id: int, now: datetime, life: timedelta) -> str:
    """Return a signed token."""
    key = keyring.current()
    issued_at = int(now.timestamp())
    claims = {
        "sub": str(user_id),
        "sid": session_id,
        "jti": random_uuid(),
        "iat": issued_at,
        "exp": issued_at + int(life.total_seconds()),
    }
    secret = keyring.derived(key, PURPOSE)
    return jwt.encode(claims, secret, ALGORITHM, headers={"kid": key.key_id})


def read(
    keyring: Keyring, token: str, now: datetime, *, ignore_expiry: bool = False
) -> AccessClaims:
    """Return the claims of a genuine token.

    Raises: TokenInvalid; TokenExpired, unless `ignore_expiry`.
    """
    if len(token) > LONGEST_TOKEN:
        raise TokenInvalid
    try:
        key = keyring.find(str(jwt.get_unverified_header(token).get("kid")))
        if key is None or keyring.is_retired_for(key, LONGEST_LIFE):
            raise TokenInvalid
        claims = _decoder.decode(token, keyring.derived(key, PURPOSE), algorithms=[ALGORITHM])
        read = AccessClaims(session_id=str(claims["sid"]), expires_at=int(claims["exp"]))
    except (jwt.PyJWTError, ValueError, TypeError):
        raise TokenInvalid from None
    if not ignore_expiry and now.timestamp() > read.expires_at + LEEWAY.total_seconds():
        raise TokenExpired
    return read
