"""Binary values as text: base64url without padding (RFC 4648 §5)."""

import base64
import re

_ALPHABET = re.compile(r"[A-Za-z0-9_-]*")


def encoded(raw: bytes) -> str:
    """Return bytes as text."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def decoded(text: str) -> bytes:
    """Return the bytes of a text; there is only one spelling of them.

    Raises: ValueError.
    """
    if not _ALPHABET.fullmatch(text):
        raise ValueError("not base64url")
    raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if encoded(raw) != text:
        raise ValueError("not the canonical spelling")
    return raw
