"""The installation's secret keys, and the purpose keys derived from them.

Invariant: a secret leaves this module only as a key derived for one named purpose, so no two uses
ever share a key. A retired key still verifies and decrypts; only the newest one signs.
"""

import base64
import json
import logging
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import jwt
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from jwt.types import Options

from app.core import base64url, folders
from app.core.clock import Clock
from app.core.config import Config, ConfigError, parse_secret_keys
from app.crypto.tokens import random_bytes, random_hex

# Workers notice a rotation by another process after this long at the latest.
RECHECK_SECONDS = 1.0
RETURN_FILE = "Put the file back from the backup."
RETURN_OR_BEGIN = (
    "Put the file back from the backup, or mount the volume it is on; a new installation gets it "
    "from `flask prepare`."
)

log = logging.getLogger(__name__)

ALGORITHM = "HS256"
MAX_TOKEN_LIFETIME = timedelta(days=1)
MAX_TOKEN_LENGTH = 2048
# A token of ours and its claims take 1.5 kB.
KEPT_TOKENS = 4096

# PyJWT would skip padding and whitespace in a token.
_TOKEN = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
# Times are checked by the reader of the claims alone, against the application's clock.
_UNTIMED: Options = {"verify_exp": False, "verify_iat": False, "verify_nbf": False}


class TokenForged(Exception):
    """The text is not a token signed with a key of ours that is still trusted."""


@dataclass(frozen=True)
class SecretKey:
    """One master key. `retired_at` is None for the newest, which signs and encrypts."""

    key_id: str
    secret: bytes = field(repr=False)
    created_at: datetime | None = None
    retired_at: datetime | None = None

    def derived(self, purpose: str) -> bytes:
        """Return the 32-byte key of one purpose; cached, as it is needed constantly."""
        return _derived(self.secret, purpose)


@lru_cache(maxsize=256)
def _derived(secret: bytes, purpose: str) -> bytes:
    """Derive a key (HKDF-SHA256, RFC 5869)."""
    hkdf = HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=purpose.encode())
    return hkdf.derive(secret)


@lru_cache(maxsize=64)
def _key_id(header: str) -> str:
    """Return which key a token claims to be signed with; all tokens of one key have one header.

    Raises: ValueError, TypeError, LookupError, RecursionError.
    """
    return str(json.loads(base64url.decoded(header))["kid"])


@lru_cache(maxsize=KEPT_TOKENS)
def _claims(token: str, derived_key: bytes) -> Mapping[str, Any]:
    """Return the claims of a token signed with a key; kept, as a client sends each many times.

    What is not genuine is not kept. Raises: jwt.PyJWTError.
    """
    claims = jwt.decode(token, derived_key, algorithms=[ALGORITHM], options=_UNTIMED)
    return MappingProxyType(claims)


class Keyring:
    """All keys, newest first; re-read when the key file changes.

    They come from the file `path` if `is_file`, else from the environment. While the file cannot be
    read there are none, and `problem` says what to do about it.
    """

    def __init__(self, config: Config, clock: Clock) -> None:
        self.path = config.instance / "keys.json"
        self._clock = clock
        self.is_file = not config.secret_keys
        self._checked_at = clock.monotonic()
        self._seen = 0
        self.problem: str | None = None
        self._keys = tuple(SecretKey(key_id, secret) for key_id, secret in config.secret_keys)
        if self.is_file:
            self._open()

    @property
    def keys(self) -> Sequence[SecretKey]:
        """Every key, newest first; there is at least one.

        Raises: ConfigError.
        """
        if self._clock.monotonic() - self._checked_at > RECHECK_SECONDS:
            self.reread()
        self.require()
        return self._keys

    def require(self) -> None:
        """Require that there are keys, before anything starts that might need them.

        Raises: ConfigError.
        """
        if self.problem is not None:
            raise ConfigError(self.problem)

    def create(self) -> None:
        """Write a file with a first key unless there is one; concurrent processes agree on one.

        The caller must check beforehand that the database was not used with other keys.
        Raises: OSError.
        """
        if not self.path.exists():
            draft = _draft(self.path, [_fresh_key(self._clock.now())])
            try:
                # Unlike rename, this does not replace a file created meanwhile.
                os.link(draft, self.path)
                log.warning("created new keys in %s", self.path)
            except FileExistsError:
                pass
            finally:
                draft.unlink()
                folders.sync(self.path.parent)
        self._open()

    def current(self) -> SecretKey:
        """Return the key that signs and encrypts."""
        return self.keys[0]

    def find(self, key_id: str) -> SecretKey | None:
        """Return the key with this id, retired or not; None if there is none."""
        if key_id not in {key.key_id for key in self.keys}:
            self.reread()
        return next((key for key in self.keys if key.key_id == key_id), None)

    def reread(self) -> bool:
        """Read the key file again if it changed; return whether new contents were read.

        Another process may have just rotated, and signed with a key not seen here yet.
        """
        self._checked_at = self._clock.monotonic()
        if not self.is_file:
            return False
        if not self._keys:
            self._open()
            return self.problem is None
        try:
            if _written_at(self.path) == self._seen:
                return False
            self._keys = self._read()
        except (OSError, ConfigError) as error:
            log.warning("the key file cannot be read now; the known keys stay in use: %s", error)
            return False
        return True

    def rotate(self) -> SecretKey:
        """Put a new key first and return it; the file is replaced atomically."""
        now = self._clock.now()
        current, *older = self._read()
        self._keys = (_fresh_key(now), replace(current, retired_at=now), *older)
        # Durably: what the new key encrypts may be stored at once.
        _draft(self.path, self._keys).replace(self.path)
        folders.sync(self.path.parent)
        return self._keys[0]

    def sign(self, claims: dict[str, Any], purpose: str) -> str:
        """Return a token that carries `claims`."""
        key = self.current()
        return jwt.encode(claims, key.derived(purpose), ALGORITHM, headers={"kid": key.key_id})

    def verified(self, token: str, purpose: str) -> Mapping[str, Any]:
        """Return the claims of a genuine token, which may have expired.

        Raises: TokenForged.
        """
        if len(token) > MAX_TOKEN_LENGTH or not _TOKEN.fullmatch(token):
            raise TokenForged
        try:
            key = self.find(_key_id(token.partition(".")[0]))
            if key is None or self._is_of_the_past(key):
                raise TokenForged
            return _claims(token, key.derived(purpose))
        except (jwt.PyJWTError, ValueError, TypeError, LookupError, RecursionError):
            raise TokenForged from None

    def _is_of_the_past(self, key: SecretKey) -> bool:
        """Return whether every token that the key signed has expired by now."""
        retired_at = key.retired_at
        return retired_at is not None and retired_at + MAX_TOKEN_LIFETIME < self._clock.now()

    def _open(self) -> None:
        """Read the key file for the first time, or note in `problem` why it cannot be read."""
        try:
            self._keys = self._read()
        except FileNotFoundError:
            self.problem = f"{self.path} is missing. {RETURN_OR_BEGIN}"
        except OSError as error:
            self.problem = f"{self.path}: {error.strerror}. {RETURN_FILE}"
        except ConfigError as error:
            self.problem = f"{error}. {RETURN_FILE}"

    def _read(self) -> tuple[SecretKey, ...]:
        written_at = _written_at(self.path)
        try:
            records = json.loads(self.path.read_text())["keys"]
            keys = tuple(_from_record(record) for record in records)
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigError(f"{self.path}: not a key file") from error
        if not keys:
            raise ConfigError(f"{self.path}: holds no key")
        self._seen, self.problem = written_at, None
        return keys


def _written_at(path: Path) -> int:
    """Return a file's mtime in ns; from an open file, since NFS caches the attributes of a path."""
    with path.open("rb") as file:
        return os.fstat(file.fileno()).st_mtime_ns


def _fresh_key(now: datetime) -> SecretKey:
    return SecretKey(random_hex()[:12], random_bytes(), created_at=now)


def _draft(path: Path, keys: Sequence[SecretKey]) -> Path:
    """Write the keys to a new private file beside `path` and sync it; leave none on failure."""
    draft = path.with_name(f".{path.name}.{random_hex()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            json.dump({"keys": [_to_record(key) for key in keys]}, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        draft.unlink()
        raise OSError(error.errno, error.strerror, str(path)) from error
    return draft


def _to_record(key: SecretKey) -> dict[str, str | None]:
    return {
        "id": key.key_id,
        "secret": base64.urlsafe_b64encode(key.secret).decode(),
        "created_at": key.created_at.isoformat() if key.created_at else None,
        "retired_at": key.retired_at.isoformat() if key.retired_at else None,
    }


def _from_record(record: dict[str, str | None]) -> SecretKey:
    [(key_id, secret)] = parse_secret_keys(f"{record['id']}:{record['secret']}")
    known = {name: record.get(name) for name in ("created_at", "retired_at")}
    times = {name: datetime.fromisoformat(text) for name, text in known.items() if text}
    return SecretKey(key_id, secret, **times)
