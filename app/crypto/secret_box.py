"""Encrypts secrets that must be read back, and makes keyed hashes of short codes.

Invariant: a ciphertext opens only for the row it was written for, because the row is authenticated
with it as associated data.
"""

import hashlib
import hmac
import os
from typing import NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from app.core import base64url
from app.core.errors import Misconfigured
from app.crypto.keyring import Keyring, SecretKey

VERSION = "v1"
NONCE_BYTES = 12
# Shown in place of a stored secret, and never accepted as one.
REDACTED = "***REDACTED***"


class SecretUnreadable(Misconfigured):
    """The ciphertext of `row` was made with a key that is missing, or for another row."""

    def __init__(self, row: str) -> None:
        super().__init__()
        self.row = row


class SecretBox:
    """AES-256-GCM under the newest key; older keys still open what they sealed."""

    def __init__(self, keyring: Keyring) -> None:
        self._keyring = keyring

    def seal(self, secret: str, row: str) -> str:
        """Encrypt `secret` for one row, named by a string such as `mail_smtp_password`."""
        key = self._keyring.current()
        nonce = os.urandom(NONCE_BYTES)
        cipher = AESGCM(key.derived("secret-box"))
        sealed = cipher.encrypt(nonce, secret.encode(), row.encode())
        return ":".join((VERSION, key.key_id, base64url.encoded(nonce), base64url.encoded(sealed)))

    def open(self, sealed: str, row: str) -> str:
        """Decrypt what `seal` made for the same row.

        Raises: SecretUnreadable.
        """
        try:
            version, key_id, nonce, body = sealed.split(":")
            key = self._keyring.find(key_id) if version == VERSION else None
            if key is None:
                raise SecretUnreadable(row)
            cipher = AESGCM(key.derived("secret-box"))
            content = base64url.decoded(nonce), base64url.decoded(body)
            return cipher.decrypt(*content, row.encode()).decode()
        except (InvalidTag, ValueError) as error:
            raise SecretUnreadable(row) from error

    def is_current(self, sealed: str) -> bool:
        """Return whether the newest key made this ciphertext."""
        return sealed.startswith(f"{VERSION}:{self._keyring.current().key_id}:")

    def knows(self, key_id: str) -> bool:
        """Return whether there is a key with this id."""
        return self._keyring.find(key_id) is not None

    def keyed_digest(self, text: str, purpose: str) -> str:
        """Return an HMAC-SHA-256 under the newest key, for lookups in Redis, not for storage."""
        return self._hmac(self._keyring.current(), text, f"keyed-digest:{purpose}")

    def keyed_hash(self, text: str, purpose: str) -> str:
        """Return `<key id>:<HMAC-SHA-256>` under the newest key, for storing a short code.

        Without the key, nobody can find the code by brute force.
        """
        key = self._keyring.current()
        return f"{key.key_id}:{self._hmac(key, text, f'keyed-hash:{purpose}')}"

    def is_keyed_hash(self, text: str, stored: str, purpose: str) -> bool:
        """Return, in constant time, whether `stored` is the `keyed_hash` of this text.

        Older keys still verify what they made; a hash whose key is gone matches nothing.
        """
        key_id, _, mac = stored.partition(":")
        key = self._keyring.find(key_id)
        if key is None:
            return False
        return hmac.compare_digest(self._hmac(key, text, f"keyed-hash:{purpose}"), mac)

    def _hmac(self, key: SecretKey, text: str, purpose: str) -> str:
        message = text.encode("utf-8", "surrogatepass")
        return hmac.new(key.derived(purpose), message, hashlib.sha256).hexdigest()


class Resealed(NamedTuple):
    """How many stored secrets were re-encrypted, and how many no key opens."""

    changed: int
    unreadable: int


class Resealer:
    """Re-encrypts stored secrets under the newest key; `unreadable` counts those no key opened."""

    def __init__(self, box: SecretBox) -> None:
        self._box = box
        self.unreadable = 0

    def resealed(self, sealed: str, row: str) -> str | None:
        """Return a ciphertext under the newest key; None if it already is, or if no key opens it.

        Leave the latter alone: a key that is restored may still open it. A matching key id does not
        prove that it is the right key, so every ciphertext is opened.
        """
        try:
            secret = self._box.open(sealed, row)
        except SecretUnreadable:
            self.unreadable += 1
            return None
        return None if self._box.is_current(sealed) else self._box.seal(secret, row)
