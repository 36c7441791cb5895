"""The form of refresh tokens (decisions A6, A27, E4).

A token is 52 bytes in URL-safe base64, opaque to clients: a random selector that stays the same
for the whole session, the time it expires, and 256 random bits that make this one token. The
selector finds the session by an index that rotation never touches; a token whose selector is known
and whose digest is not the live one was spent before, however long ago.

The expiry is not signed. It only says when a spent token stops raising the alarm, and whoever could
change it holds nothing but a spent token; a live token's expiry is the session's own.
"""

import base64
import hmac
from dataclasses import dataclass
from datetime import UTC, datetime

from app.core.tokens import digest, random_bytes

SELECTOR_BYTES = 16
EXPIRY_BYTES = 4
SECRET_BYTES = 32
TOKEN_LENGTH = 70
LATEST_EXPIRY = 2 ** (8 * EXPIRY_BYTES) - 1


@dataclass(frozen=True)
class RefreshToken:
    """A token taken apart; `text` is what the client holds."""

    text: str
    selector: bytes
    expires_at: datetime

    @property
    def digest(self) -> str:
        """Return what the live token is stored as."""
        return digest(self.text)

    @property
    def selector_digest(self) -> str:
        """Return what the session is found by."""
        return digest(self.selector.hex())

    def is_stored_as(self, stored: str | None) -> bool:
        """Tell whether a stored digest is this token's."""
        return stored is not None and hmac.compare_digest(self.digest, stored)


def new(expires_at: datetime, *, selector: bytes | None = None) -> RefreshToken:
    """Return a fresh token: the first of a session, or one more with the session's selector."""
    selector = selector or random_bytes(SELECTOR_BYTES)
    expiry = min(int(expires_at.timestamp()), LATEST_EXPIRY).to_bytes(EXPIRY_BYTES, "big")
    raw = selector + expiry + random_bytes(SECRET_BYTES)
    return RefreshToken(_text(raw), selector, _time(expiry))


def parse(text: str) -> RefreshToken | None:
    """Return the token, None for anything that cannot be one of ours."""
    if len(text) != TOKEN_LENGTH or not text.isascii():
        return None
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except ValueError:
        return None
    if _text(raw) != text:
        return None  # another spelling of the same bytes
    expiry = raw[SELECTOR_BYTES : SELECTOR_BYTES + EXPIRY_BYTES]
    return RefreshToken(text, raw[:SELECTOR_BYTES], _time(expiry))


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _time(expiry: bytes) -> datetime:
    return datetime.fromtimestamp(int.from_bytes(expiry, "big"), UTC)
