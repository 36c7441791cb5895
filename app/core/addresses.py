"""Which addresses of the network belong to others, and which are internal.

Tables of our own, from the IANA special-purpose registries (RFC 6890), because what the standard
library takes for private differs between the versions of Python in use.
"""

import ipaddress
from functools import lru_cache

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_INTERNAL_4 = tuple(
    ipaddress.IPv4Network(text)
    for text in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",  # carrier-grade NAT, also metadata of some clouds
        "127.0.0.0/8",
        "168.63.129.16/32",  # Azure's host agent: a public number that only a guest can reach
        "169.254.0.0/16",  # link-local, metadata of most clouds
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
)
# Of IPv6 only this part is given out to the world; loopback, link-local, site-local, unique local,
# multicast and IPv4-compatible addresses all lie outside.
_GLOBAL_6 = ipaddress.IPv6Network("2000::/3")
_INTERNAL_6 = tuple(
    ipaddress.IPv6Network(text)
    for text in (
        "2001::/23",  # protocols, among them Teredo, which carries an IPv4 address
        "2001:db8::/32",
        "2002::/16",  # 6to4 carries an IPv4 address
        "3fff::/20",
    )
)
# Whoever may ask these is given a cloud's credentials. They also lie within ordinary networks.
_METADATA = frozenset(
    ipaddress.ip_address(text)
    for text in (
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
        "fd00:42::42",
        "fd00:c1::a9fe:a9fe",
        "fd00:ec2::23",
        "fd00:ec2::254",
        "fd20:ce::254",
    )
)
# RFC 6052: an IPv4 address in an IPv6-only network, reached through a translator.
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
# What one subscriber is given at the most (RFC 6177); a /48 is to be had for nothing.
_SITE_BITS = 48


def parse(text: str) -> Address:
    """Return the address; one that leads to an IPv4 one is returned as that.

    Raises: ValueError.
    """
    address = unmapped(text)
    if isinstance(address, ipaddress.IPv6Address) and address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def unmapped(text: str) -> Address:
    """Return the address; an IPv4 one in IPv6 clothes, as on a dual-stack socket, as IPv4.

    Raises: ValueError.
    """
    address = ipaddress.ip_address(text)
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


@lru_cache(maxsize=1024)
def site_of(address: str) -> str | None:
    """Return the network of the subscriber to whom an IPv6 address belongs; None for any other."""
    if ":" not in address:
        return None
    return str(ipaddress.IPv6Network((address, _SITE_BITS), strict=False))


def is_public(address: Address) -> bool:
    """Tell whether the address can be somebody else's on the internet."""
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in network for network in _INTERNAL_4)
    return address in _GLOBAL_6 and not any(address in network for network in _INTERNAL_6)


def is_never_asked(address: Address) -> bool:
    """Tell whether this is no server in anybody's network, but this machine, or metadata."""
    is_here = address.is_loopback or address.is_unspecified
    return is_here or address.is_link_local or address.is_multicast or address in _METADATA


def is_loopback_name(host: str) -> bool:
    """Tell whether the host, as written, can be nothing but this machine."""
    if host == "localhost":
        return True
    try:
        return parse(host).is_loopback
    except ValueError:
        return False
