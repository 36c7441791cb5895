"""A proxy to Redis that loses answers, as a network does."""

import socket
import threading
from contextlib import suppress
from pathlib import Path


class LossyRedis:
    """Forwards commands to Redis, but drops the first answer to each script; a context manager.

    The script has then run, but its caller cannot know. An identical second command runs it again
    and is answered. `lost` counts the dropped answers.
    """

    def __init__(self, redis_url: str, socket_path: Path) -> None:
        self.url = f"unix://{socket_path}"
        self.lost = 0
        self._target = redis_url.removeprefix("unix://").partition("?")[0]
        self._path = str(socket_path)
        self._seen: set[bytes] = set()

    def __enter__(self) -> "LossyRedis":
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(self._path)
        self._server.listen()
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.close()

    def _serve(self) -> None:
        with suppress(OSError):  # closed
            while True:
                client, _ = self._server.accept()
                threading.Thread(target=self._pass_on, args=(client,), daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        """Forward commands, which this client sends one at a time, until an answer is dropped."""
        with client, socket.socket(socket.AF_UNIX) as server, suppress(OSError):
            server.connect(self._target)
            while command := client.recv(65536):
                server.sendall(command)
                answer = server.recv(65536)
                if self._loses(command, answer):
                    self.lost += 1
                    return
                client.sendall(answer)

    def _loses(self, command: bytes, answer: bytes) -> bool:
        is_run = b"EVAL" in command and not answer.startswith(b"-NOSCRIPT")
        is_new = command not in self._seen
        if is_run:
            self._seen.add(command)
        return is_run and is_new
