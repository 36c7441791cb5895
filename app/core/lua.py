"""Scripts that Redis runs as one step, and their arguments."""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from redis import Redis
from redis.exceptions import NoScriptError


def epoch_seconds(moment: datetime) -> str:
    """Return a time as scripts are given it and keys hold it: seconds since 1970."""
    return f"{moment.timestamp():.6f}"


def pairs(fields: Mapping[str, str | float]) -> list[str | float]:
    """Return the fields of a hash as arguments for HSET."""
    return [text for pair in fields.items() for text in pair]


class Script:
    """One script; made once per process, run on any client."""

    def __init__(self, text: str) -> None:
        self._text = text
        # What Redis calls it, not a safeguard.
        self._name = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()

    def run(self, redis: Redis, keys: Sequence[str], *arguments: str | float) -> int:
        """Return the number that the script answers."""
        return int(self.answer(redis, keys, *arguments))

    def answer(self, redis: Redis, keys: Sequence[str], *arguments: str | float) -> Any:
        """Return what the script answers; Redis is told its text only when it has lost it."""
        try:
            return redis.evalsha(self._name, len(keys), *keys, *arguments)
        except NoScriptError:
            return redis.eval(self._text, len(keys), *keys, *arguments)
