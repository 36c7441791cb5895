"""Names of passkeys (spec 02 §2.2)."""

import unicodedata

from app.passkeys.errors import PasskeyNameInvalid, PasskeyNameTooLong
from app.passkeys.models import LONGEST_NAME

DEFAULT_NAME = "Passkey"
# Control characters, and halves of surrogate pairs, which no database stores.
_REFUSED = {"Cc", "Cs"}


def tidy(typed: str | None) -> str:
    """Return the name to store; a blank or absent one becomes the default.

    Raises: PasskeyNameTooLong, PasskeyNameInvalid.
    """
    name = (typed or "").strip() or DEFAULT_NAME
    if len(name) > LONGEST_NAME:
        raise PasskeyNameTooLong
    if any(unicodedata.category(character) in _REFUSED for character in name):
        raise PasskeyNameInvalid
    return name
