"""GATEHOUSE_BIND as a client sees it: where to connect, what to print, and whether it is healthy.

`python -m app.serving.health` is the check for containers: its exit code is 0 or 1.
"""

import http.client
import json
import os
import socket
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.core.config import Config, ConfigError

LOOPBACK_OF_WILDCARD = {"0.0.0.0": "127.0.0.1", "::": "::1", "*": "127.0.0.1"}  # noqa: S104 - compared only
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


@dataclass(frozen=True)
class Address:
    """Where the service listens: `host` and `port`, or the `path` of a unix socket."""

    host: str = ""
    port: int = 0
    path: str = ""

    @classmethod
    def of(cls, bind: str) -> "Address":
        """Parse a GATEHOUSE_BIND that has already been validated."""
        if bind.startswith("unix:"):
            return cls(path=bind.removeprefix("unix:"))
        host, _, port = bind.rpartition(":")
        return cls(host=host.removeprefix("[").removesuffix("]"), port=int(port))

    @property
    def url(self) -> str:
        """The URL to open in a browser on this machine; `unix:` and the path of a socket."""
        if self.path:
            return f"unix:{self.path}"
        host = self._local_host
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"

    @property
    def page_url(self) -> str:
        """`url` with loopback as localhost: passkeys need a domain, not an IP address."""
        return f"http://localhost:{self.port}" if self._local_host in LOOPBACK else self.url

    @property
    def _local_host(self) -> str:
        return LOOPBACK_OF_WILDCARD.get(self.host, self.host)

    def bind_error(self) -> str | None:
        """Return why the address cannot be bound, None if it can. gunicorn would retry for 5 s."""
        if self.path:
            folder = Path(self.path).parent
            if not folder.is_dir():
                return "there is no such folder"
            return None if os.access(folder, os.W_OK | os.X_OK) else "its folder is not writable"
        try:
            family, kind, proto, _, place = socket.getaddrinfo(
                "0.0.0.0" if self.host == "*" else self.host,  # noqa: S104 - the operator's choice
                self.port,
                type=socket.SOCK_STREAM,
                flags=socket.AI_PASSIVE,
            )[0]
            with socket.socket(family, kind, proto) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(place)
                probe.listen(1)
        except OSError as error:
            return error.strerror or str(error)
        return None

    def request(self, method: str, path: str, *, seconds: float = 5) -> tuple[int, Any]:
        """Send a request without a body; return the status and JSON of the response.

        The JSON is None if the response is something else.
        Raises: OSError, http.client.HTTPException.
        """
        host = self._local_host or "localhost"
        with closing(http.client.HTTPConnection(host, self.port, seconds)) as connection:
            if self.path:
                connection.sock = socket.socket(socket.AF_UNIX)
                connection.sock.settimeout(seconds)
                connection.sock.connect(self.path)
            connection.request(method, path)
            answer = connection.getresponse()
            try:
                return answer.status, json.load(answer)
            except ValueError:
                return answer.status, None

    def is_healthy(self) -> bool | None:
        """Return whether GET /health succeeds; None while nothing listens."""
        try:
            return self.request("GET", "/health")[0] == http.HTTPStatus.OK
        except (ConnectionRefusedError, FileNotFoundError):
            return None
        except (OSError, http.client.HTTPException):
            return False


def main() -> int:
    """Check the service that this environment configures, on this machine."""
    try:
        return 0 if Address.of(Config.from_env(os.environ).bind).is_healthy() else 1
    except ConfigError:
        return 1


if __name__ == "__main__":
    sys.exit(main())
