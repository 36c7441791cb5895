"""Resolves PostgreSQL's host before libpq does, which would block the event loop meanwhile.

libpq waits for the DNS in C, where no timeout of ours applies. `host` is left as it was, since
certificates are verified against it.
"""

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any

from psycopg2 import OperationalError
from sqlalchemy import Engine, event

from app.core import connecting

LOOK_UP_SECONDS = 5.0
# For a host that was found before, and probably still has the same addresses.
LOOK_UP_AGAIN_SECONDS = 1.0
DEFAULT_PORT = 5432

_dns = connecting.DnsLookups()
_known: dict[tuple[str, int], list[str]] = {}


def install(engine: Engine) -> None:
    """Make the engine's connections resolve their host here."""

    @event.listens_for(engine, "do_connect")
    def find(_dialect: object, _record: object, _args: object, parameters: dict[str, Any]) -> None:
        parameters.update(with_addresses(parameters))


def with_addresses(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return libpq's parameters with all addresses of their host.

    Socket folders, IP addresses, lists of hosts and a given `hostaddr` are left to libpq. While the
    DNS does not answer, the last known addresses are used.
    Raises: psycopg2.OperationalError when a host without known addresses is not found in time.
    """
    host, port = str(parameters.get("host") or ""), str(parameters.get("port") or DEFAULT_PORT)
    if not _is_name(host) or not port.isdecimal() or parameters.get("hostaddr"):
        return dict(parameters)
    addresses = _addresses(host, int(port))
    hosts = ",".join([host] * len(addresses))  # libpq wants lists of equal length
    return {**parameters, "host": hosts, "hostaddr": ",".join(addresses)}


def _is_name(host: str) -> bool:
    if not host or host[0] in "/@" or "," in host:
        return False
    try:
        ip_address(host)
    except ValueError:
        return True
    return False


def _addresses(host: str, port: int) -> list[str]:
    known = _known.get((host, port))
    seconds = LOOK_UP_AGAIN_SECONDS if known else LOOK_UP_SECONDS
    try:
        found = _dns.within(seconds, lambda: connecting.look_up(host, port))
    except (OSError, UnicodeError) as error:
        if known:
            return known
        raise OperationalError(f"the address of {host} could not be found: {error}") from error
    _known[host, port] = list(dict.fromkeys(str(place[0]) for *_, place in found))
    return _known[host, port]
