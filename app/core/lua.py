"""Scripts that Redis runs as one step."""

import hashlib
from collections.abc import Sequence
from typing import Any

from redis import Redis
from redis.exceptions import NoScriptError


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
