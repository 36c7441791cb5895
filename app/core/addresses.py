"""Classifies IP addresses as public, internal, or never to be contacted."""

import ipaddress
from functools import lru_cache

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# Internal although the standard library of some Python versions takes them for global.
_INTERNAL = tuple(
    ipaddress.ip_network(text)
    for text in (
        "168.63.129.16/32",  # Azure's host agent: a public address that only its guests can reach
        "192.0.0.0/24",
        "192.88.99.0/24",  # 6to4 relays
        "2001::/23",  # protocol assignments, among them Teredo, which embeds an IPv4 address
        "2002::/16",  # 6to4 embeds an IPv4 address
        "3fff::/20",
    )
)
# The only part of IPv6 allocated as global unicast: IPv4-compatible, translated and site-local
# addresses all lie outside it.
_GLOBAL_6 = ipaddress.IPv6Network("2000::/3")
# Metadata services, which hand cloud credentials to any caller. Some lie inside ordinary private
# ranges, so an operator who allows such a range must not thereby allow these.
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
# RFC 6052: an IPv4 address as seen from an IPv6-only network, reached through a translator.
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
# The largest prefix one subscriber is assigned (RFC 6177); a /48 can be had for free.
_SITE_BITS = 48


def parse(text: str) -> Address:
    """Return the parsed address; an IPv4-mapped or NAT64 one as the IPv4 address it leads to.

    Raises: ValueError.
    """
    address = parse_and_unmap(text)
    if isinstance(address, ipaddress.IPv6Address) and address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def parse_and_unmap(text: str) -> Address:
    """Return the parsed address; an IPv4-mapped one, as on a dual-stack socket, as IPv4.

    Raises: ValueError.
    """
    address = ipaddress.ip_address(text)
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


@lru_cache(maxsize=1024)
def subscriber_prefix(address: str) -> str | None:
    """Return the subscriber network (/48) of an IPv6 address; None for anything else."""
    if ":" not in address:
        return None
    return str(ipaddress.IPv6Network((address, _SITE_BITS), strict=False))


def is_public(address: Address) -> bool:
    """Return whether the address can belong to a third party on the internet."""
    if not address.is_global or address.is_multicast:
        return False
    if isinstance(address, ipaddress.IPv6Address) and address not in _GLOBAL_6:
        return False
    return not any(address in network for network in _INTERNAL)


def is_always_forbidden(address: Address) -> bool:
    """Return whether it may never be called: this machine, link-local, multicast or metadata."""
    is_here = address.is_loopback or address.is_unspecified
    return is_here or address.is_link_local or address.is_multicast or address in _METADATA


def is_loopback_name(host: str) -> bool:
    """Return whether the host, as written, can only mean this machine."""
    if host == "localhost":
        return True
    try:
        return parse(host).is_loopback
    except ValueError:
        return False
