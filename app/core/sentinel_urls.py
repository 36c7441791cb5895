"""URLs that lead to a Redis by way of its Sentinels.

`redis+sentinel://[user:password@]host[:port][,host[:port]...]/service[/database][?option=value]`,
with TLS to servers and Sentinels `rediss+sentinel://`. Redis' client knows no such URL.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode

DEFAULT_PORT = 26379
_URL = re.compile(
    r"(?P<scheme>rediss?)\+sentinel://((?P<user>[^/?#]*)@)?(?P<hosts>[^/?#@]+)"
    r"/(?P<service>[^/?#@]+)(?P<database>/[^/?#]*)?(\?(?P<query>[^#]*))?"
)
_HOST = re.compile(r"(\[(?P<ip6>[0-9A-Fa-f:.]+)\]|(?P<name>[^\[\]:]+))(:(?P<port>\d{1,5}))?")
# What authenticates at the Sentinels, which have users and passwords of their own.
_SENTINEL_OPTIONS = {"sentinel_username": "username", "sentinel_password": "password"}


@dataclass(frozen=True)
class SentinelUrl:
    """`server_url` has, in a form that Redis' client parses, all but where the server is."""

    sentinels: tuple[tuple[str, int], ...]
    service: str
    server_url: str = field(repr=False)
    sentinel_options: Mapping[str, Any] = field(repr=False)


def is_sentinel_url(raw: str) -> bool:
    """Return whether it is meant to lead to Sentinels."""
    return raw.startswith(("redis+sentinel://", "rediss+sentinel://"))


def parse(raw: str) -> SentinelUrl:
    """Take such a URL apart.

    Raises: ValueError, without any part of the URL.
    """
    found = _URL.fullmatch(raw)
    if found is None:
        raise ValueError("must be redis+sentinel://host[:port][,...]/service[/database]")
    options = parse_qsl(found["query"] or "", keep_blank_values=True)
    server_options = [pair for pair in options if pair[0] not in _SENTINEL_OPTIONS]
    user = "" if found["user"] is None else f"{found['user']}@"
    query = f"?{urlencode(server_options)}" if server_options else ""
    return SentinelUrl(
        sentinels=tuple(map(_address, found["hosts"].split(","))),
        service=unquote(found["service"]),
        server_url=f"{found['scheme']}://{user}localhost{found['database'] or ''}{query}",
        sentinel_options={_SENTINEL_OPTIONS[k]: v for k, v in options if k in _SENTINEL_OPTIONS},
    )


def _address(written: str) -> tuple[str, int]:
    found = _HOST.fullmatch(written)
    port = int(found["port"] or DEFAULT_PORT) if found else 0
    if found is None or not 0 < port < 65536:
        raise ValueError("has a Sentinel that is not host or host:port")
    host = found["ip6"] or found["name"]
    try:
        host.encode("idna")
    except UnicodeError:
        raise ValueError("has a Sentinel whose host is not valid") from None
    return host, port
