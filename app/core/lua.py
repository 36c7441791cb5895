"""Scripts that Redis runs as one step."""

import hashlib
from collections.abc import Sequence

from redis import Redis
from redis.exceptions import NoScriptError


class Script:
    """One script; made once per process, run on any client."""

    def __init__(self, text: str) -> None:
        self._text = text
        # What Redis calls it, not a safeguard.
        self._name = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()

    def run(self, redis: Redis, keys: Sequence[str], *arguments: str | float) -> int:
        """Return what the script answers; Redis is told its text only when it has lost it."""
        try:
            answer = redis.evalsha(self._name, len(keys), *keys, *arguments)
        except NoScriptError:
            answer = redis.eval(self._text, len(keys), *keys, *arguments)
        return int(answer)
