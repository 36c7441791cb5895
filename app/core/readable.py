"""Whether a socket has something to read, told without waiting or letting others run."""

import select
from typing import Any

from gevent.monkey import get_original

_poll: Any = get_original("select", "poll")  # gevent's own would let others run


def is_readable(descriptor: int) -> bool:
    """Tell whether something has arrived, be it the end of the connection."""
    look = _poll()
    look.register(descriptor, select.POLLIN)
    return bool(look.poll(0))
