"""asyncio servers that run beside the test."""

import asyncio
import threading
from typing import Self


class BackgroundServer:
    """A server in its own thread; a context manager.

    `_serve` sets `started` once it listens, and returns when `_ended` is set.
    """

    def __enter__(self) -> Self:
        started = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._ended = asyncio.Event()
        self._thread = threading.Thread(target=self._run, args=(started,), daemon=True)
        self._thread.start()
        assert started.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join(10)

    def _run(self, started: threading.Event) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve(started))

    async def _serve(self, started: threading.Event) -> None:
        raise NotImplementedError
