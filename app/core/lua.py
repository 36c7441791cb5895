"""Lua scripts that Redis runs atomically, and their arguments."""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from redis import Redis
from redis.exceptions import NoScriptError


def epoch_seconds(moment: datetime) -> str:
    """Return a time as scripts take it and keys hold it: Unix time in seconds, six decimals."""
    return f"{moment.timestamp():.6f}"


def pairs(fields: Mapping[str, str | float]) -> list[str | float]:
    """Return the fields of a hash as alternating names and values, for HSET."""
    return [text for pair in fields.items() for text in pair]


class Script:
    """One script, created once per process and run on any client."""

    def __init__(self, text: str) -> None:
        self._text = text
        # The name by which Redis caches it, not a security measure.
        self._name = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()

    def run(self, redis: Redis, keys: Sequence[str], *arguments: str | float) -> int:
        """Run the script and return its answer, a number."""
        return int(self.answer(redis, keys, *arguments))

    def answer(self, redis: Redis, keys: Sequence[str], *arguments: str | float) -> Any:
        """Run the script and return its answer; its text is sent only if Redis lacks it."""
        try:
            return redis.evalsha(self._name, len(keys), *keys, *arguments)
        except NoScriptError:
            return redis.eval(self._text, len(keys), *keys, *arguments)
