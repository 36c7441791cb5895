"""What a waiting mail keeps to be made of: its template's stored values, sealed.

They may hold a token, which nobody who reads the database shall have.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple, cast

from app.core.secret_box import SecretBox

# Beside the values, none of which is called so.
EXPIRES_AT = "expires_at"


class Content(NamedTuple):
    """A mail's values, and when what it brings is worth nothing any more; None: never."""

    values: dict[str, str]
    expires_at: datetime | None


def seal(
    secret_box: SecretBox,
    mail_id: str,
    values: Mapping[str, str],
    expires_at: datetime | None = None,
) -> str:
    """Return what may be stored of a mail."""
    end = {} if expires_at is None else {EXPIRES_AT: expires_at.isoformat()}
    return secret_box.seal(json.dumps({**values, **end}), name_of(mail_id))


def opened(secret_box: SecretBox, mail_id: str, payload: str) -> Content:
    """Return what is stored of a mail.

    Raises: SecretUnreadable.
    """
    values = cast("dict[str, str]", json.loads(secret_box.open(payload, name_of(mail_id))))
    end = values.pop(EXPIRES_AT, None)
    return Content(values, datetime.fromisoformat(end) if end else None)


def name_of(mail_id: str) -> str:
    """Return the name under which a mail's payload is sealed."""
    return f"mail_outbox:{mail_id}"
