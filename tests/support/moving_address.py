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
        self._lock = threading.Lock()

    def __enter__(self) -> "MovingAddress":
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.close()
        self.move(None)

    def move(self, target: Path | None, *, cuts: bool = True) -> None:
        """Lead new connections to another server; without `cuts`, open ones are kept."""
        with self._lock:
            self._target = target
            cut, self._open = (self._open, set()) if cuts else (set(), self._open)
        for end in cut:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _serve(self) -> None:
        with suppress(OSError):  # closed
            while True:
                client, _ = self._server.accept()
                threading.Thread(target=self._join, args=(client,), daemon=True).start()

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
