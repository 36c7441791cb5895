"""Recovery codes: ten per account, each of twelve characters with 60 random bits.

Invariant: they are stored as keyed hashes bound to the account, so a stolen database
neither reveals them nor allows offline guessing, and verifying one needs no Argon2.
"""

import base64

from app.crypto.secret_box import SecretBox
from app.crypto.tokens import random_bytes
from app.mfa import typed_codes

COUNT = 10
LENGTH = 12
GROUP = 4
MIN_TYPED_LENGTH = 8
PURPOSE = "mfa-recovery-code"


def new_codes() -> list[str]:
    """Return a fresh set of codes in display form, `XXXX-XXXX-XXXX`."""
    return [_new_code() for _ in range(COUNT)]


def normalised(typed: str) -> str | None:
    """Return the characters of a typed code in upper case; None if it cannot be one."""
    code = typed_codes.characters(typed)
    is_possible = len(code) >= MIN_TYPED_LENGTH and code.isascii() and code.isalnum()
    return code.upper() if is_possible else None


def hash_code(box: SecretBox, user_id: int, code: str) -> str:
    """Return the keyed hash under which an account's code is stored."""
    return box.keyed_hash(_bound(user_id, code), PURPOSE)


def matches_hash(box: SecretBox, user_id: int, code: str, code_hash: str) -> bool:
    """Return whether `code_hash` is what `hash_code` made of the code, under any known key."""
    return box.is_keyed_hash(_bound(user_id, code), code_hash, PURPOSE)


def _new_code() -> str:
    code = base64.b32encode(random_bytes(LENGTH * 5 // 8 + 1)).decode()[:LENGTH]
    return "-".join(code[start : start + GROUP] for start in range(0, LENGTH, GROUP))


def _bound(user_id: int, code: str) -> str:
    return f"{user_id}:{normalised(code)}"
