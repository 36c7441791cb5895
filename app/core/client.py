"""Who is calling, as far as the connection shows."""

import ipaddress
from dataclasses import dataclass, field
from functools import lru_cache

from app.core.addresses import parse_and_unmap

MAX_IP_LENGTH = 45
MAX_USER_AGENT_LENGTH = 512
MAX_CACHED_ADDRESSES = 1024


@dataclass(frozen=True)
class Client:
    """The caller's address and user agent; None if unknown.

    `token_id` is that of the access token the request was made with; None without one.
    """

    address: str | None = None
    user_agent: str | None = None
    token_id: int | None = None

    @property
    def network(self) -> str:
        """Return what limits count by: an IPv4 address, or the /64 an IPv6 host can pick from."""
        return _network(self.address or "")

    @classmethod
    def of(
        cls, address: str | None, user_agent: str | None, token_id: int | None = None
    ) -> "Client":
        """Return a client whose texts fit their columns and hold no character a column refuses."""
        return cls(
            address=(address or "")[:MAX_IP_LENGTH] or None,
            user_agent=_printable(user_agent or "")[:MAX_USER_AGENT_LENGTH] or None,
            token_id=token_id,
        )


@dataclass(frozen=True)
class SignInWish:
    """What a browser that signs in presents and asks for.

    `device` is its cookie `service_device`. `remember` is false for a session that ends with its
    window, None if nothing was said. `remember_device`: later, the second step is left out.
    """

    device: str | None = field(default=None, repr=False)
    remember: bool | None = None
    remember_device: bool = False

    @property
    def is_short(self) -> bool:
        """Return whether the session and its cookies are to end with the browser's window."""
        return self.remember is False


@lru_cache(maxsize=MAX_CACHED_ADDRESSES)
def _network(address: str) -> str:
    """Return `Client.network` of an address; cached, since each limit of a request asks for it."""
    try:
        parsed = parse_and_unmap(address)
    except ValueError:
        return "unknown"
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    return str(ipaddress.ip_network((parsed, 64), strict=False).network_address)


def _printable(text: str) -> str:
    return "".join(character for character in text if character.isprintable())
