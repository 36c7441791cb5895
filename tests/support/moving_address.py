"""An address that moves from one server to another, as a virtual IP does in a failover."""

import socket
import threading
from contextlib import suppress
from pathlib import Path


class MovingAddress:
    """Forwards TCP connections to the unix socket `target`, which may be set; a context manager.

    While the target is None, the address is nobody's: connections are refused.
    """

    def __init__(self, target: Path | None) -> None:
        self._target = target
        self._open: set[socket.socket] = set()
        self._connections: list[threading.Thread] = []
        self._lock = threading.Lock()

    def __enter__(self) -> "MovingAddress":
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self._serving = threading.Thread(target=self._serve, daemon=True)
        self._serving.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown(socket.SHUT_RDWR)  # which wakes whoever accepts; closing does not
        self._serving.join()
        self._server.close()
        self.move(None)
        for connection in self._connections:
            connection.join()

    def move(self, target: Path | None, *, cuts: bool = True) -> None:
        """Lead new connections to another server; without `cuts`, open ones are kept."""
        with self._lock:
            self._target = target
            cut, self._open = (self._open, set()) if cuts else (set(), self._open)
        for end in cut:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _serve(self) -> None:
        with suppress(OSError):  # shut down
            while True:
                client, _ = self._server.accept()
                connection = threading.Thread(target=self._join, args=(client,), daemon=True)
                self._connections.append(connection)
                connection.start()

    def _join(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server, suppress(OSError):
            with self._lock:
                if self._target is None:
                    return
                server.connect(str(self._target))
                self._open |= {client, server}
            back = threading.Thread(target=_pass_on, args=(server, client), daemon=True)
            back.start()
            _pass_on(client, server)
            back.join()
            with self._lock:
                self._open -= {client, server}


def _pass_on(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_RDWR)
