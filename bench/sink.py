"""An SMTP server that accepts every mail and only counts them: `python -m bench.sink PORT`.

It is a process of its own, so that its CPU is not charged to the service. Each line on standard
input is answered by a line of JSON: the mails since the last one. It ends with its standard input.
"""

import json
import subprocess
import sys
from collections.abc import Collection
from contextlib import suppress
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any, Self

from aiosmtpd.controller import Controller

from bench import procs
from bench.servers import Service, free_port

READY_SECONDS = 30


@dataclass
class Arrivals:
    """How many mails arrived, and when the first and the last did, by the monotonic clock (s)."""

    count: int = 0
    first_at: float = 0.0
    last_at: float = 0.0


class Sink:
    """The benchmark's handle on the sink's process, pinned to `cores`; a context manager."""

    def __init__(self, cores: Collection[int] | None = None) -> None:
        self._port = free_port()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.sink", str(self._port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=procs.on_cores(cores),
        )
        self.take_arrivals()

    def take_arrivals(self) -> Arrivals:
        """Return what arrived since the last call."""
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("the mail sink has no pipes")
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the mail sink has ended")
        return Arrivals(**json.loads(line))

    def use(self, service: Service) -> None:
        """Make a service send its mails here; this takes effect within a second."""
        settings = {
            "mail_smtp_host": "127.0.0.1",
            "mail_smtp_port": self._port,
            "mail_security": False,
            "mail_from_address": "gatehouse@bench.example.com",
        }
        service.flask("config", "import", "-", stdin=json.dumps(settings))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()


class Counter:
    """The handler that aiosmtpd calls."""

    def __init__(self) -> None:
        self.arrivals = Arrivals()

    async def handle_DATA(self, *_: Any) -> str:  # noqa: N802
        self.arrivals.last_at = perf_counter()
        self.arrivals.first_at = self.arrivals.first_at or self.arrivals.last_at
        self.arrivals.count += 1
        return "250 OK"


def main() -> None:
    """Accept mails until standard input ends."""
    counter = Counter()
    controller = Controller(
        counter,
        hostname="127.0.0.1",
        port=int(sys.argv[1]),
        server_hostname="sink.example",
        ready_timeout=READY_SECONDS,
    )
    controller.start()
    for _ in sys.stdin:
        arrivals, counter.arrivals = counter.arrivals, Arrivals()
        with suppress(BrokenPipeError):
            print(json.dumps(asdict(arrivals)), flush=True)
    controller.stop()


if __name__ == "__main__":
    main()
