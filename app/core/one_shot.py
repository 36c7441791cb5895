"""What waits in Redis for one answer, right or wrong: it is read and deleted by one command.

The clock decides expiry; Redis sweeps later. Flows that are tried several times, or that say what
became of them, are those of `flow_store.py`.

Both functions raise RedisError while Redis does not answer.
"""

import json
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from app.core.runtime import Runtime

# Longer than any clock of ours is off; whether something has expired is the clock's to say.
SWEPT_AFTER = timedelta(minutes=1)


def put(
    rt: Runtime,
    key: str,
    data: Mapping[str, Any],
    life: timedelta,
    *,
    seal: Callable[[str], str] = str,
) -> None:
    """Keep `data` until it is taken, or for `life`; Redis gets to see what `seal` makes of it."""
    expires_at = (rt.clock.now() + life).timestamp()
    kept = seal(json.dumps({**data, "expires_at": expires_at}, ensure_ascii=False))
    rt.breaker.call(lambda redis: redis.setex(key, life + SWEPT_AFTER, kept))


def take(rt: Runtime, key: str, *, unseal: Callable[[str], str] = str) -> dict[str, Any] | None:
    """Return what was put there and forget it; of simultaneous callers one gets it.

    None: unknown or expired. Raises what `unseal` raises.
    """
    kept: Any = rt.breaker.call(lambda redis: redis.getdel(key))
    if kept is None:
        return None
    data: dict[str, Any] = json.loads(unseal(kept))
    return data if data.pop("expires_at") > rt.clock.now().timestamp() else None
