"""Names of passkeys (spec 02 §2.2)."""

from app.core.texts import has_controls
from app.passkeys.errors import PasskeyNameInvalid, PasskeyNameTooLong
from app.passkeys.models import MAX_NAME_LENGTH

DEFAULT_NAME = "Passkey"


def tidy(typed: str | None) -> str:
    """Return the name to store, stripped; DEFAULT_NAME if it is blank or None.

    Raises: PasskeyNameTooLong, PasskeyNameInvalid.
    """
    name = (typed or "").strip() or DEFAULT_NAME
    if len(name) > MAX_NAME_LENGTH:
        raise PasskeyNameTooLong
    if has_controls(name):
        raise PasskeyNameInvalid
    return name
