"""State kept in Redis for a single attempt, right or wrong: one command reads and deletes it.

The clock decides expiry; the TTL in Redis only sweeps later. Flows that allow several attempts, or
that report what became of them, belong in `flow_store.py`.

Both functions raise RedisError while Redis does not answer.
"""

import json
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from app.core.runtime import Runtime

# More than the skew of any of our clocks: the clock decides expiry, not the TTL.
TTL_MARGIN = timedelta(minutes=1)


def put(
    rt: Runtime,
    key: str,
    data: Mapping[str, Any],
    lifetime: timedelta,
    *,
    seal: Callable[[str], str] = str,
) -> None:
    """Store `data` for `lifetime` or until it is taken; Redis sees only what `seal` returns."""
    expires_at = (rt.clock.now() + lifetime).timestamp()
    kept = seal(json.dumps({**data, "expires_at": expires_at}, ensure_ascii=False))
    rt.redis.breaker.call(lambda redis: redis.setex(key, lifetime + TTL_MARGIN, kept))


def take(rt: Runtime, key: str, *, unseal: Callable[[str], str] = str) -> dict[str, Any] | None:
    """Return what was stored and delete it; of concurrent callers only one gets it.

    None: unknown or expired. Raises what `unseal` raises.
    """
    kept: Any = rt.redis.breaker.call(lambda redis: redis.getdel(key))
    if kept is None:
        return None
    data: dict[str, Any] = json.loads(unseal(kept))
    return data if data.pop("expires_at") > rt.clock.now().timestamp() else None
