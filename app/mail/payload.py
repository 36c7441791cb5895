"""The content of a waiting mail: its template's stored values, encrypted.

They may include a token, which must not be readable from the database.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple, cast

from app.core.secret_box import SecretBox

# Stored among the values; no template variable has this name.
EXPIRES_AT = "expires_at"


class Content(NamedTuple):
    """A mail's values, and when its content becomes useless; None: never."""

    values: dict[str, str]
    expires_at: datetime | None


def seal(
    secret_box: SecretBox,
    mail_id: str,
    values: Mapping[str, str],
    expires_at: datetime | None = None,
) -> str:
    """Return the encrypted payload to store for a mail."""
    end = {} if expires_at is None else {EXPIRES_AT: expires_at.isoformat()}
    return secret_box.seal(json.dumps({**values, **end}), name_of(mail_id))


def unseal(secret_box: SecretBox, mail_id: str, payload: str) -> Content:
    """Return the decrypted content of a mail.

    Raises: SecretUnreadable.
    """
    values = cast("dict[str, str]", json.loads(secret_box.open(payload, name_of(mail_id))))
    end = values.pop(EXPIRES_AT, None)
    return Content(values, datetime.fromisoformat(end) if end else None)


def name_of(mail_id: str) -> str:
    """Return the row name that a mail's payload is bound to (see `SecretBox`)."""
    return f"mail_outbox:{mail_id}"
