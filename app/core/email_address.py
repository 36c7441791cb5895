"""E-mail addresses: which are accepted, and how they are written in a mail.

The email-validator library turns international domains into ASCII. It does no more than that: it
would refuse local parts whose dots RFC 5321 requires to be quoted, and domains with an emoji in
Punycode, although people have such addresses.
"""

import ipaddress
import re
from contextlib import suppress
from dataclasses import dataclass

import email_validator

from app.core import letter

MAX_EMAIL_LENGTH = 254
MAX_DOMAIN_LENGTH = 253

# Reserved names such as `.test` and `.local` are in daily use inside private networks.
email_validator.SPECIAL_USE_DOMAIN_NAMES.clear()

_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_LOCAL_PART = re.compile(r"""("?)([A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64})\1""")


def normalized(typed: str) -> str:
    """Return the address in lower case, without quotes, with an international domain in Punycode.

    Raises: ValueError, also for a local part outside ASCII or one that could be read as encoded,
    and for a domain without a dot.
    """
    typed_local, _, typed_domain = typed.strip().rpartition("@")
    local = _LOCAL_PART.fullmatch(typed_local)
    if local is None:
        raise ValueError("Before the @ stand up to 64 letters, digits, dots and other ASCII signs.")
    if is_misread(typed):
        raise ValueError("Before the @ there can be no =? as mail programs may read more into it.")
    domain = _in_ascii(typed_domain)
    if not is_domain(domain):
        raise ValueError("After the @ stands a domain with a dot.")
    address = f"{local[2].lower()}@{domain}"
    if len(address) > MAX_EMAIL_LENGTH:
        raise ValueError(f"The address is longer than {MAX_EMAIL_LENGTH} characters.")
    return address


def is_misread(address: str) -> bool:
    """Return whether mail programs may take the local part for something encoded (RFC 2047)."""
    return letter.ENCODED_WORD in address.rpartition("@")[0]


def is_domain(text: str) -> bool:
    """Return whether it is a host name with a dot, in lower case and in ASCII."""
    labels = text.split(".")
    fits = len(labels) > 1 and len(text) <= MAX_DOMAIN_LENGTH
    return fits and all(map(_LABEL.fullmatch, labels))


def helo_name(typed: str) -> str:
    """Return what a client may call itself at a server (RFC 5321, section 4.1.1.1), in lower case.

    That is a host name or, for an IP address, the literal in brackets. Raises: ValueError.
    """
    name = typed.strip().lower()
    address = name.removeprefix("[").removesuffix("]").removeprefix("ipv6:")
    with suppress(ValueError):
        is_old = ipaddress.ip_address(address).version == 4
        if "%" not in address:  # a scope means nothing to others
            return f"[{address}]" if is_old else f"[IPv6:{address}]"
    if not (is_domain(name) or _LABEL.fullmatch(name)):
        raise ValueError("must be a host name, an internationalised one in punycode, or an address")
    return name


def _in_ascii(domain: str) -> str:
    if domain.isascii():
        return domain.lower()
    try:
        return email_validator.validate_email(
            f"a@{domain}", check_deliverability=False, globally_deliverable=False
        ).ascii_domain
    except email_validator.EmailNotValidError as error:
        raise ValueError(str(error)) from None


@dataclass(frozen=True)
class Mailbox:
    """A normalised address with a name, which may be empty."""

    address: str
    name: str = ""

    @property
    def domain(self) -> str:
        """Return the part after the @."""
        return self.address.rpartition("@")[2]

    @property
    def addr_spec(self) -> str:
        """Return the address as it is sent to a server, with its local part quoted if need be."""
        local, _, domain = self.address.rpartition("@")
        return f"{letter.local_part(local)}@{domain}"
