"""Binary values as text: base64url without padding (RFC 4648 §5)."""

import base64
import re

_ALPHABET = re.compile(r"[A-Za-z0-9_-]*")
# By length modulo 4: the last characters that leave the unused bits zero, as the canonical encoding
# requires (RFC 4648 §3.5). A single left-over character cannot encode a byte.
_ENDS = {1: "", 2: "AQgw", 3: "AEIMQUYcgkosw048"}


def encoded(raw: bytes) -> str:
    """Encode bytes as text."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def decoded(text: str) -> bytes:
    """Decode a text, accepting only the canonical encoding of its bytes.

    Raises: ValueError.
    """
    if not _ALPHABET.fullmatch(text):
        raise ValueError("not base64url")
    left_over = len(text) % 4
    if left_over and text[-1] not in _ENDS[left_over]:
        raise ValueError("not the canonical spelling")
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
