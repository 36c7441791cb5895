"""What the kernel reports about a TCP socket: fields of Linux's struct tcp_info (linux/tcp.h)."""

import sys
from socket import IPPROTO_TCP, TCP_INFO
from typing import Any

# tcpi_unacked: for a listener, the number of connections waiting to be accepted.
ACCEPT_QUEUE = slice(24, 28)
# tcpi_last_data_recv, in milliseconds.
LAST_DATA_RECEIVED = slice(52, 56)


def read(socket: Any, field: slice) -> int:
    """Return a field of a socket; 0 if it is not a TCP socket."""
    try:
        info = socket.getsockopt(IPPROTO_TCP, TCP_INFO, field.stop)
    except OSError:
        return 0
    return int.from_bytes(info[field], sys.byteorder)
