"""Binary values as text: base64url without padding (RFC 4648 §5)."""

import base64
import re

_ALPHABET = re.compile(r"[A-Za-z0-9_-]*")
# By how many characters are left over: those that end a text whose spare bits are zero, as they
# must be (RFC 4648 §3.5). One character alone is no byte.
_ENDS = {1: "", 2: "AQgw", 3: "AEIMQUYcgkosw048"}


def encoded(raw: bytes) -> str:
    """Return bytes as text."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def decoded(text: str) -> bytes:
    """Return the bytes of a text; there is only one spelling of them.

    Raises: ValueError.
    """
    if not _ALPHABET.fullmatch(text):
        raise ValueError("not base64url")
    left_over = len(text) % 4
    if left_over and text[-1] not in _ENDS[left_over]:
        raise ValueError("not the canonical spelling")
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
