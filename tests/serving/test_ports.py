"""The ports on which the suite has services listen."""

import socket

import pytest

from tests.support.live import dial, free_port


def test_a_free_port_is_kept_for_who_is_to_listen_there():
    port = free_port()
    with socket.socket() as somebody_else, pytest.raises(OSError, match="in use"):
        somebody_else.bind(("127.0.0.1", port))
    with pytest.raises(ConnectionRefusedError):
        dial(port)
    for _ in range(2):
        with socket.create_server(("127.0.0.1", port)):
            dial(port).close()
