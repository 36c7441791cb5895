"""A TLS-terminating proxy, as in front of the service in production."""

import asyncio
import ssl
import threading
from contextlib import suppress

from tests.support.background import BackgroundServer


class TlsFront(BackgroundServer):
    """Accepts TLS connections and relays their bytes to a local port; a context manager."""

    def __init__(self, context: ssl.SSLContext, upstream_port: int) -> None:
        self._context = context
        self._upstream_port = upstream_port
        self.port = 0

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
