"""The wire form of passkeys (spec 02 §2.2 to §2.7)."""

import json
from typing import Any

from app.passkeys.queries import ListedPasskey
from app.passkeys.registration import StartedCeremony
from app.web.schema import timestamp


def started(waiting: StartedCeremony) -> dict[str, Any]:
    """Return the payload of a started ceremony."""
    return {"flow_id": waiting.flow_id, "public_key": waiting.public_key}


def passkey(listed: ListedPasskey) -> dict[str, Any]:
    """Return a passkey as its owner sees it; keys, credential ids and handles are never shown."""
    return {
        "id": listed.id,
        "name": listed.name,
        "transports": None if listed.transports is None else json.loads(listed.transports),
        "backup_eligible": listed.backup_eligible,
        "backed_up": listed.backed_up,
        "sign_count": listed.sign_count,
        "created_at": timestamp(listed.created_at),
        "updated_at": timestamp(listed.updated_at),
        "last_used_at": timestamp(listed.last_used_at),
    }
