"""Sends what is in the outbox, in the background of every serving process."""

from collections.abc import Callable

from app.core.runtime import Runtime


def start(rt: Runtime) -> Callable[[], None]:
    """Send mails in the background from now on; return how to stop."""
    raise NotImplementedError
