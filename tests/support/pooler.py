"""A connection pooler in transaction mode, like PgBouncer, with two connections to PostgreSQL."""

import os
import queue
import socket
import struct
import threading
from contextlib import closing, suppress
from pathlib import Path

import psycopg2
import sqlalchemy as sa

CONNECTIONS = 2
TIMEOUT_SECONDS = 10.0
STARTUP = 196_608  # version 3.0 of the protocol
TOLD = ("server_version", "client_encoding", "DateStyle", "standard_conforming_strings")
IDLE = b"I"


class Pooler:
    """Assigns its connections in turn, one per message; a context manager.

    Only a transaction keeps its connection until it ends. The pooler speaks the simple query
    protocol, which is all that psycopg2 uses.
    """

    def __init__(self, database_url: str, folder: Path) -> None:
        url = sa.make_url(database_url)
        self._target = url.set(drivername="postgresql").render_as_string(hide_password=False)
        self._path = folder / ".s.PGSQL.5432"
        query = {"host": str(folder)}
        self.url = url.set(host=None, port=None, query=query).render_as_string(hide_password=False)
        self._idle: queue.Queue[_Server] = queue.Queue()

    def __enter__(self) -> "Pooler":
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self._path))
        self._listener.listen()
        self._connect()
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        self._disconnect()

    def replace(self) -> None:
        """Replace the connections to PostgreSQL, as a pooler does every hour."""
        self._disconnect()
        self._connect()

    def _connect(self) -> None:
        for _ in range(CONNECTIONS):
            self._idle.put(_Server(self._target))

    def _disconnect(self) -> None:
        """Close every connection, once each transaction has ended."""
        for _ in range(CONNECTIONS):
            self._take().close()

    def _take(self) -> "_Server":
        return self._idle.get(timeout=TIMEOUT_SECONDS)

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        server = None
        with client, suppress(OSError):
            [size] = struct.unpack("!i", _read(client, 4))
            if struct.unpack("!i", _read(client, size - 4)[:4]) != (STARTUP,):
                return
            client.sendall(_greeting(self._target))
            while (message := _message(client))[:1] != b"X":
                server = server or self._take()
                if server.answer(message, client) == IDLE:
                    self._idle.put(server)
                    server = None
        if server is not None:  # the client hung up in the middle of a transaction
            server.close()
            self._idle.put(_Server(self._target))


class _Server:
    """A connection to PostgreSQL, authenticated by psycopg2; clients share its socket."""

    def __init__(self, target: str) -> None:
        self._connection = psycopg2.connect(target)
        self._socket = socket.socket(fileno=os.dup(self._connection.fileno()))
        self._socket.setblocking(True)

    def answer(self, message: bytes, client: socket.socket) -> bytes:
        """Forward a message and relay its answer; return the transaction status it reports."""
        self._socket.sendall(message)
        while True:
            answer = _message(self._socket)
            client.sendall(answer)
            if answer[:1] == b"Z":
                return answer[-1:]

    def close(self) -> None:
        self._socket.close()
        self._connection.close()


def _greeting(target: str) -> bytes:
    """Return the messages that a client gets once it is authenticated."""
    with closing(psycopg2.connect(target)) as connection:
        told = [f"{name}\0{connection.get_parameter_status(name)}\0" for name in TOLD]
    messages = [b"R" + _sized(struct.pack("!i", 0))]
    messages += [b"S" + _sized(pair.encode()) for pair in told]
    messages += [b"Z" + _sized(IDLE)]
    return b"".join(messages)


def _sized(body: bytes) -> bytes:
    return struct.pack("!i", 4 + len(body)) + body


def _message(stream: socket.socket) -> bytes:
    head = _read(stream, 5)
    return head + _read(stream, struct.unpack("!i", head[1:])[0] - 4)


def _read(stream: socket.socket, size: int) -> bytes:
    """Return exactly `size` bytes.

    Raises: OSError at the end of the stream.
    """
    read = b""
    while len(read) < size:
        piece = stream.recv(size - len(read))
        if not piece:
            raise OSError("closed")
        read += piece
    return read
