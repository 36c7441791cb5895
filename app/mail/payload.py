"""What a waiting mail keeps to be made of: its template's stored values, sealed.

They may hold a token, which nobody who reads the database shall have.
"""

import json
from collections.abc import Mapping
from typing import cast

from app.core.secret_box import SecretBox


def seal(secret_box: SecretBox, mail_id: str, values: Mapping[str, str]) -> str:
    """Return what may be stored of a mail's values."""
    return secret_box.seal(json.dumps(values), _name(mail_id))


def opened(secret_box: SecretBox, mail_id: str, payload: str) -> dict[str, str]:
    """Return the values of a stored payload.

    Raises: SecretUnreadable.
    """
    return cast("dict[str, str]", json.loads(secret_box.open(payload, _name(mail_id))))


def resealed(secret_box: SecretBox, mail_id: str, payload: str) -> str | None:
    """Return a payload under the newest key; None when it is, or when no key opens it."""
    return secret_box.resealed(payload, _name(mail_id))


def _name(mail_id: str) -> str:
    return f"mail_outbox:{mail_id}"
