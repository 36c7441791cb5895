"""What stands before the service in production and speaks TLS for it."""

import asyncio
import ssl
import threading
from contextlib import suppress


class TlsFront:
    """Takes TLS connections and hands their bytes to a port of this machine; a context manager."""

    def __init__(self, context: ssl.SSLContext, upstream_port: int) -> None:
        self._context = context
        self._upstream_port = upstream_port
        self.port = 0

    def __enter__(self) -> "TlsFront":
        started = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._ended = asyncio.Event()
        self._thread = threading.Thread(target=self._run, args=(started,), daemon=True)
        self._thread.start()
        assert started.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join(10)

    def _run(self, started: threading.Event) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve(started))

    async def _serve(self, started: threading.Event) -> None:
        server = await asyncio.start_server(self._relay, "127.0.0.1", 0, ssl=self._context)
        self.port = server.sockets[0].getsockname()[1]
        started.set()
        await self._ended.wait()
        server.close()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream = await asyncio.open_connection("127.0.0.1", self._upstream_port)
        await asyncio.gather(_pump(reader, upstream[1]), _pump(upstream[0], writer))


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await source.read(65536):
            sink.write(data)
            await sink.drain()
    sink.close()
