"""Finds PostgreSQL's addresses before libpq does, which would hold the event loop up meanwhile.

libpq waits for the DNS in C, and no time-out of ours ends that. `host` stays what it was: it is
what a certificate is checked against.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from psycopg2 import OperationalError
from sqlalchemy import Engine, event

from app.core import connecting

LOOK_UP_SECONDS = 5.0
DEFAULT_PORT = 5432


def install(engine: Engine) -> None:
    """Have the engine's connections find their addresses here."""

    @event.listens_for(engine, "do_connect")
    def find(_dialect: object, _record: object, _args: object, parameters: dict[str, Any]) -> None:
        parameters.update(with_addresses(parameters))


def with_addresses(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return libpq's parameters with all addresses of their host.

    Sockets in a folder have none; a list of hosts, and addresses that are given, are left to libpq.
    Raises: psycopg2.OperationalError when the DNS does not tell in time.
    """
    host = str(parameters.get("host") or "")
    if not host or host[0] in "/@" or "," in host or parameters.get("hostaddr"):
        return dict(parameters)
    port = int(parameters.get("port") or DEFAULT_PORT)
    try:
        found = connecting.within(LOOK_UP_SECONDS, lambda: connecting.look_up(host, port))
    except (OSError, UnicodeError) as error:
        raise OperationalError(f"the address of {host} could not be found: {error}") from error
    addresses = list(dict.fromkeys(str(place[0]) for *_, place in found))
    hosts = ",".join([host] * len(addresses))  # libpq wants as many of one as of the other
    return {**parameters, "host": hosts, "hostaddr": ",".join(addresses)}


def renewed(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a connection with the addresses its host has by now.

    After a failover they are others. While the DNS does not tell, they are those it had.
    """
    named = {name: value for name, value in parameters.items() if name != "hostaddr"}
    hosts = set(str(parameters.get("host") or "").split(","))
    if len(hosts) == 1:
        with suppress(OperationalError):
            return with_addresses({**named, "host": hosts.pop()})
    return dict(parameters)
