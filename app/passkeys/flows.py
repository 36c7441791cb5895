"""Challenges that wait for an authenticator's answer, in Redis.

Each is good for one answer, right or wrong: it is read and deleted by one command. The clock
decides expiry; Redis sweeps later. A challenge of one purpose is unknown for the other.

Both functions raise RedisError while Redis does not answer.
"""

import json
import math
from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Any

from app.core.runtime import Runtime
from app.core.tokens import digest, random_token, random_uuid
from app.passkeys.errors import FlowInvalid
from app.settings import keys

SWEEP_SECONDS = 60


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
    flow_id, seconds = random_uuid(), life_seconds(rt)
    expires_at = rt.clock.now() + timedelta(seconds=seconds)
    kept = json.dumps({**data, "expires_at": expires_at.timestamp()})
    name = _key(purpose, flow_id)
    rt.breaker.call(lambda redis: redis.setex(name, math.ceil(seconds) + SWEEP_SECONDS, kept))
    return flow_id


def take(rt: Runtime, purpose: Purpose, flow_id: str) -> Mapping[str, Any]:
    """Use a flow up and return what it was opened with; of simultaneous callers one gets it.

    Raises: FlowInvalid.
    """
    name = _key(purpose, flow_id.strip())
    kept: Any = rt.breaker.call(lambda redis: redis.getdel(name))
    data: dict[str, Any] = json.loads(kept) if kept else {}
    if data.get("expires_at", 0) <= rt.clock.now().timestamp():
        raise FlowInvalid
    return data


def _key(purpose: Purpose, flow_id: str) -> str:
    # By its digest, so that Redis never shows an id somebody could answer.
    return f"gatehouse:passkey:{purpose}:{digest(flow_id)}"
