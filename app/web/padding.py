"""A minimum response time for routes whose timing would reveal whether an account exists."""

from functools import wraps
from typing import Any

from app.core.tokens import random_fraction
from app.web.operation import View
from app.web.runtime import runtime

JITTER_SECONDS = 0.125


def minimum_duration(view: View) -> View:
    """Respond no sooner than the configured floor plus jitter, on success and failure alike.

    The work is done within that time, so its duration reveals nothing.
    """

    @wraps(view)
    def pad_and_call(**arguments: Any) -> Any:
        rt = runtime()
        floor = rt.config.response_floor_ms / 1000
        ends_at = rt.clock.monotonic() + (
            floor + JITTER_SECONDS * random_fraction() if floor else 0
        )
        try:
            return view(**arguments)
        finally:
            if (left := ends_at - rt.clock.monotonic()) > 0:
                rt.clock.sleep(left)

    return pad_and_call
