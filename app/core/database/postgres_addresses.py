"""Finds PostgreSQL's addresses before libpq does, which would hold the event loop up meanwhile.

libpq waits for the DNS in C, and no time-out of ours ends that. `host` stays what it was: it is
what a certificate is checked against.
"""

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any

from psycopg2 import OperationalError
from sqlalchemy import Engine, event

from app.core import connecting

LOOK_UP_SECONDS = 5.0
# Of a host that was found before, and is probably where it was.
LOOK_UP_AGAIN_SECONDS = 1.0
DEFAULT_PORT = 5432

_dns = connecting.DnsQuestions()
_known: dict[tuple[str, int], list[str]] = {}


def install(engine: Engine) -> None:
    """Have the engine's connections find their addresses here."""

    @event.listens_for(engine, "do_connect")
    def find(_dialect: object, _record: object, _args: object, parameters: dict[str, Any]) -> None:
        parameters.update(with_addresses(parameters))


def with_addresses(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return libpq's parameters with all addresses of their host.

    Folders of sockets and addresses have none, lists and addresses that are given are left to
    libpq. While the DNS does not tell, a host is where it was.
    Raises: psycopg2.OperationalError when the DNS does not tell of a new one in time.
    """
    host, port = str(parameters.get("host") or ""), str(parameters.get("port") or DEFAULT_PORT)
    if not _is_name(host) or not port.isdecimal() or parameters.get("hostaddr"):
        return dict(parameters)
    addresses = _addresses(host, int(port))
    hosts = ",".join([host] * len(addresses))  # libpq wants as many of one as of the other
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
