"""The format of refresh tokens.

A token is 68 bytes in URL-safe base64, opaque to clients: a random selector that stays the same
for the whole session, the expiry time, 256 random bits unique to this token, and a MAC over all of
that. The selector finds the session through an index that rotation never touches; a genuine token
whose selector is known but whose digest is not the live one has been spent, however long ago. The
MAC keeps anyone who has seen a token from forging others, or another expiry.
"""

import hmac
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property

from app.core import base64url
from app.crypto.keyring import Keyring, SecretKey
from app.crypto.tokens import digest, random_bytes

SELECTOR_BYTES = 16
EXPIRY_BYTES = 4
SECRET_BYTES = 32
MAC_BYTES = 16
TOKEN_LENGTH = 91
PURPOSE = "refresh-token"
LATEST_EXPIRY = 2 ** (8 * EXPIRY_BYTES) - 1


@dataclass(frozen=True)
class RefreshToken:
    """A parsed token; `text` is what the client holds."""

    text: str = field(repr=False)
    selector: bytes = field(repr=False)
    expires_at: datetime

    @cached_property
    def digest(self) -> str:
        """Return the digest that the live token is stored as."""
        return digest(self.text)

    @cached_property
    def selector_digest(self) -> str:
        """Return the digest that the session is looked up by."""
        return digest(self.selector.hex())

    def is_stored_as(self, stored: str | None) -> bool:
        """Return whether a stored digest is this token's."""
        return stored is not None and hmac.compare_digest(self.digest, stored)


def new(keyring: Keyring, expires_at: datetime, *, selector: bytes | None = None) -> RefreshToken:
    """Return a fresh token: a session's first, or a successor with the session's `selector`."""
    selector = selector or random_bytes(SELECTOR_BYTES)
    expiry = min(int(expires_at.timestamp()), LATEST_EXPIRY).to_bytes(EXPIRY_BYTES, "big")
    raw = selector + expiry + random_bytes(SECRET_BYTES)
    raw += _mac(keyring.current(), raw)
    return RefreshToken(base64url.encoded(raw), selector, _time(expiry))


def parse(keyring: Keyring, text: str) -> RefreshToken | None:
    """Return the parsed token; None for anything not issued by this service."""
    if len(text) != TOKEN_LENGTH:
        return None
    try:
        raw = base64url.decoded(text)
    except ValueError:
        return None
    body, mac = raw[:-MAC_BYTES], raw[-MAC_BYTES:]
    # A token does not name its key, which may be newer than those this process has loaded.
    if not _is_ours(keyring, body, mac) and not (keyring.reread() and _is_ours(keyring, body, mac)):
        return None
    expiry = raw[SELECTOR_BYTES : SELECTOR_BYTES + EXPIRY_BYTES]
    return RefreshToken(text, raw[:SELECTOR_BYTES], _time(expiry))


def _is_ours(keyring: Keyring, body: bytes, mac: bytes) -> bool:
    return any(hmac.compare_digest(mac, _mac(key, body)) for key in keyring.keys)


def _mac(key: SecretKey, body: bytes) -> bytes:
    return hmac.digest(key.derived(PURPOSE), body, "sha256")[:MAC_BYTES]


def _time(expiry: bytes) -> datetime:
    return datetime.fromtimestamp(int.from_bytes(expiry, "big"), UTC)
