"""Reads everything in the stores, to search it for what must not be there."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import sqlalchemy as sa
from redis import Redis


def everything_in(database: sa.Engine) -> Iterator[str]:
    """Return every value of every column of every table, as text."""
    with database.connect() as connection:
        for table in sa.inspect(connection).get_table_names():
            for row in connection.execute(sa.text(f'SELECT * FROM "{table}"')):
                yield from (str(value) for value in row if value is not None)


def everything_at(redis_url: str) -> Iterator[str]:
    """Return every key and every value in Redis, whatever its type."""
    with Redis.from_url(redis_url, decode_responses=True) as client:
        yield from everything_kept_by(client)


def everything_kept_by(client: Any) -> Iterator[str]:
    """Return every key and every value that a client of Redis sees, whatever its type."""
    read: dict[str, Callable[[str], Iterable[str]]] = {
        "string": lambda key: [client.get(key) or ""],
        "hash": lambda key: [text for pair in client.hgetall(key).items() for text in pair],
        "set": client.smembers,
        "zset": lambda key: client.zrange(key, 0, -1),
        "list": lambda key: client.lrange(key, 0, -1),
        "none": lambda key: [],  # gone since the scan: a rate limit's bucket that is full again
    }
    for key in client.scan_iter():
        yield key
        yield from read[client.type(key)](key)
