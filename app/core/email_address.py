"""E-mail addresses: which are accepted, and how they are written in a mail.

The email-validator library turns international domains into ASCII. It decides no more than that: it
would refuse local parts whose dots RFC 5321 wants in quotes, and domains with an emoji in Punycode,
although people have such addresses.
"""

import re
from email.headerregistry import Address

import email_validator

MAX_EMAIL_LENGTH = 254
MAX_DOMAIN_LENGTH = 253

# Reserved names such as `.test` and `.local` are in daily use inside private networks.
email_validator.SPECIAL_USE_DOMAIN_NAMES.clear()

_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_LOCAL_PART = re.compile(r"""("?)([A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64})\1""")


def normalized(typed: str) -> str:
    """Return the address in lower case, without quotes, with an international domain in Punycode.

    Raises: ValueError, also for a local part outside ASCII and for a domain without a dot.
    """
    typed_local, _, typed_domain = typed.strip().rpartition("@")
    local = _LOCAL_PART.fullmatch(typed_local)
    if local is None:
        raise ValueError("Before the @ stand up to 64 letters, digits, dots and other ASCII signs.")
    domain = _in_ascii(typed_domain)
    if not is_domain(domain):
        raise ValueError("After the @ stands a domain with a dot.")
    address = f"{local[2].lower()}@{domain}"
    if len(address) > MAX_EMAIL_LENGTH:
        raise ValueError(f"The address is longer than {MAX_EMAIL_LENGTH} characters.")
    return address


def is_domain(text: str) -> bool:
    """Return whether it is a host name with a dot, in lower case and in ASCII."""
    labels = text.split(".")
    fits = len(labels) > 1 and len(text) <= MAX_DOMAIN_LENGTH
    return fits and all(map(_LABEL.fullmatch, labels))


def _in_ascii(domain: str) -> str:
    if domain.isascii():
        return domain.lower()
    try:
        return email_validator.validate_email(
            f"a@{domain}", check_deliverability=False, globally_deliverable=False
        ).ascii_domain
    except email_validator.EmailNotValidError as error:
        raise ValueError(str(error)) from None


class Mailbox(Address):
    """A normalised address with a name, as it is written in a mail and told to a server.

    Unlike its parent's, its local part is quoted where dots want that (RFC 5321, section 4.1.2).
    """

    def __init__(self, address: str, name: str = "") -> None:
        local, _, domain = address.rpartition("@")
        super().__init__(name, local, domain)

    @property
    def addr_spec(self) -> str:
        """Return the address, its local part perhaps in quotes."""
        local = self.username if all(self.username.split(".")) else f'"{self.username}"'
        return f"{local}@{self.domain}"
