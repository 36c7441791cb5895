"""Checks whether a socket is readable, without blocking and without yielding to other greenlets."""

import select
from typing import Any

from gevent.monkey import get_original

_poll: Any = get_original("select", "poll")  # gevent's own would yield


def is_readable(descriptor: int) -> bool:
    """Return whether data, or the end of the connection, has arrived."""
    look = _poll()
    look.register(descriptor, select.POLLIN)
    return bool(look.poll(0))
