"""What passlib lacks to verify the password hashes of other services, as handlers of passlib."""

import hashlib
import hmac
from base64 import b64encode
from typing import Any, ClassVar

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR
from passlib.crypto.digest import pbkdf2_hmac
from passlib.crypto.scrypt import scrypt as scrypt_key
from passlib.hash import bcrypt, django_bcrypt_sha256, pbkdf2_sha256, pbkdf2_sha512, phpass, scrypt
from passlib.utils.binary import h64

BCRYPT_BYTES = 72
SIGNER_KEY_BYTES = 64


def as_bytes(secret: str | bytes) -> bytes:
    """Return a password as it is hashed."""
    return secret.encode() if isinstance(secret, str) else secret


class TruncatingBcrypt(bcrypt):
    """passlib's bcrypt for its library as of version 5, which refuses what bcrypt ignores."""

    @classmethod
    def verify(cls, secret: str | bytes, hash: str | bytes, **_context: Any) -> bool:
        """Return whether the first 72 bytes of a password have this hash.

        Raises: ValueError.
        """
        return bool(super().verify(as_bytes(secret)[:BCRYPT_BYTES], hash))


class WordPressBcrypt(django_bcrypt_sha256):
    """`$wp$2y$`, of WordPress 6.8 and later: bcrypt of an HMAC-SHA-384."""

    name = "wordpress_bcrypt"
    django_prefix = "$wp"

    def _calc_checksum(self, secret: str | bytes) -> Any:
        trimmed = as_bytes(secret).strip(b" \n\r\t\v\0")  # PHP's trim()
        key = b64encode(hmac.digest(b"wp-sha384", trimmed, "sha384"))
        return super(django_bcrypt_sha256, self)._calc_checksum(key)  # type: ignore[misc]


class Phpass(phpass):
    """passlib's phpass, which does not look at the length."""

    checksum_size = 22


class Drupal(Phpass):
    """`$S$`, of Drupal 7 to 10.0: phpass with SHA-512, cut to 55 characters."""

    name = "drupal"
    checksum_size = 43
    default_ident = "$S$"
    ident_values = ("$S$",)
    ident_aliases: ClassVar = {}

    def _calc_checksum(self, secret: str | bytes) -> str:
        salt: Any = self.salt
        password = as_bytes(secret)
        digest = hashlib.sha512(salt.encode() + password).digest()
        for _ in range(1 << self.rounds):
            digest = hashlib.sha512(digest + password).digest()
        encoded: Any = h64.encode_bytes(digest)  # type: ignore[no-untyped-call]
        return str(encoded.decode()[: self.checksum_size])


class _Cut:
    """PBKDF2 with a key shorter than its digest, which passlib does not know."""

    checksum_size = None

    def _calc_checksum(self: Any, secret: str | bytes) -> bytes:
        derived: Any = pbkdf2_hmac
        return bytes(derived(self._digest, secret, self.salt, self.rounds, len(self.checksum)))


class CutSha256(_Cut, pbkdf2_sha256):  # type: ignore[misc]
    """The first bytes of PBKDF2 with SHA-256."""

    name = "pbkdf2_sha256_cut"
    ident = "$pbkdf2-sha256-cut$"


class CutSha512(_Cut, pbkdf2_sha512):  # type: ignore[misc]
    """The first bytes of PBKDF2 with SHA-512."""

    name = "pbkdf2_sha512_cut"
    ident = "$pbkdf2-sha512-cut$"


class FirebaseScrypt(scrypt):
    """Firebase's: its signer key, encrypted under a key that scrypt makes of the password.

    What is verified is the signer key followed by the password.
    """

    name = "firebase_scrypt"
    checksum_size = SIGNER_KEY_BYTES
    default_ident = "$firescrypt$"
    ident_values = ("$firescrypt$",)

    @classmethod
    def from_string(cls, hash: str | bytes, **_context: Any) -> "FirebaseScrypt":
        """Read what differs from passlib's scrypt in its name only."""
        text = as_bytes(hash).decode().replace(cls.default_ident, scrypt.default_ident, 1)
        parsed: Any = scrypt.parse(text)  # type: ignore[no-untyped-call]
        return cls(**parsed | {"ident": cls.default_ident})

    def _calc_checksum(self, secret: str | bytes) -> bytes:
        typed = as_bytes(secret)
        signer_key, password = typed[:SIGNER_KEY_BYTES], typed[SIGNER_KEY_BYTES:]
        cost, size = 1 << self.rounds, self.block_size
        key = scrypt_key(password, self.salt, n=cost, r=size, p=self.parallelism, keylen=32)
        return Cipher(AES(key), CTR(bytes(16))).encryptor().update(signer_key)
