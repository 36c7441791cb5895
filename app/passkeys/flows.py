"""Pending WebAuthn challenges, in Redis.

Each accepts one answer, right or wrong, and only for the purpose it was opened for.

`open_flow` and `take` raise RedisError while Redis is unavailable.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

from app.core import one_shot
from app.core.runtime import Runtime
from app.core.tokens import digest, random_uuid
from app.passkeys.errors import FlowInvalid
from app.settings import keys


class Purpose(StrEnum):
    """What a challenge is for."""

    LOGIN = "login"
    REGISTRATION = "registration"


@dataclass(frozen=True)
class StartedCeremony:
    """A pending ceremony; `public_key` is what the page passes to `navigator.credentials`."""

    flow_id: str
    public_key: Mapping[str, Any]


def open_flow(rt: Runtime, purpose: Purpose, data: Mapping[str, Any]) -> str:
    """Store a flow until it is answered; return its id."""
    flow_id = random_uuid()
    life = timedelta(seconds=rt.settings.get(keys.PASSKEY_FLOW_TTL_SECONDS))
    one_shot.put(rt, _key(purpose, flow_id), data, life)
    return flow_id


def take(rt: Runtime, purpose: Purpose, flow_id: str) -> Mapping[str, Any]:
    """Consume a flow and return what it was opened with; of concurrent callers, only one gets it.

    Raises: FlowInvalid.
    """
    data = one_shot.take(rt, _key(purpose, flow_id.strip()))
    if data is None:
        raise FlowInvalid
    return data


def _key(purpose: Purpose, flow_id: str) -> str:
    # A digest, so that nobody can answer a flow with an id read from Redis.
    return f"gatehouse:passkey:{purpose}:{digest(flow_id)}"
