"""Challenges that wait for an authenticator's answer, in Redis.

Each is good for one answer, right or wrong. A challenge of one purpose is unknown for the other.

`open_flow` and `take` raise RedisError while Redis does not answer.
"""

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Any

from app.core import one_shot
from app.core.runtime import Runtime
from app.core.tokens import digest, random_token, random_uuid
from app.passkeys.errors import FlowInvalid
from app.settings import keys


class Purpose(StrEnum):
    """What a challenge is for."""

    LOGIN = "login"
    REGISTRATION = "registration"


def life_seconds(rt: Runtime) -> int:
    """Return how long a flow opened now will live."""
    return rt.settings.get(keys.PASSKEY_FLOW_TTL_SECONDS)


def new_challenge() -> str:
    """Return 32 random bytes in base64url."""
    return random_token()


def open_flow(rt: Runtime, purpose: Purpose, data: Mapping[str, Any]) -> str:
    """Have a flow wait for its answer; return its id."""
    flow_id = random_uuid()
    one_shot.put(rt, _key(purpose, flow_id), data, timedelta(seconds=life_seconds(rt)))
    return flow_id


def take(rt: Runtime, purpose: Purpose, flow_id: str) -> Mapping[str, Any]:
    """Use a flow up and return what it was opened with; of simultaneous callers one gets it.

    Raises: FlowInvalid.
    """
    data = one_shot.take(rt, _key(purpose, flow_id.strip()))
    if data is None:
        raise FlowInvalid
    return data


def _key(purpose: Purpose, flow_id: str) -> str:
    # By its digest, so that Redis never shows an id somebody could answer.
    return f"gatehouse:passkey:{purpose}:{digest(flow_id)}"
