"""Validators of new setting values; each returns the normalised form or raises ValueError."""

import re
from urllib.parse import urlsplit

from app.core import email_address

_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
MAX_DOMAIN_LENGTH = 253


def email_policy_entry(entry: str) -> str:
    """Return an exact address or an ASCII domain, in lower case; `@domain` means `domain`."""
    # The lower case of the Kelvin sign is the letter k, which would hide that it is not ASCII.
    lowered = entry.lower() if entry.isascii() else entry
    domain = lowered.removeprefix("@")
    if not (_is_domain(domain) or _is_address(lowered)):
        raise ValueError(
            f"{entry!r} must be an e-mail address or a domain, internationalised ones in punycode"
        )
    return domain


def http_url(text: str) -> str:
    """Return an absolute http(s) URL; empty means the default."""
    parts = urlsplit(text)
    if text and (parts.scheme not in {"http", "https"} or not parts.netloc):
        raise ValueError("must be an absolute http or https address")
    return text


def link(text: str) -> str:
    """Return an http(s) URL or an absolute path, so that no `javascript:` URL gets into a page."""
    is_path = text.startswith("/") and not text.startswith(("//", "/\\"))
    return text if is_path else http_url(text)


def mail_address(text: str) -> str:
    """Return an address that mail can be sent from; empty means none."""
    try:
        return email_address.normalized(text) if text else text
    except ValueError as error:
        raise ValueError(f"must be an e-mail address: {error}") from None


def _is_address(entry: str) -> bool:
    """Return whether an entry is a normalised address, as stored for accounts, so it can match."""
    try:
        return email_address.normalized(entry) == entry
    except ValueError:
        return False


def _is_domain(domain: str) -> bool:
    labels = domain.split(".")
    return (
        len(labels) >= 2
        and len(domain) <= MAX_DOMAIN_LENGTH
        and all(len(label) <= 63 and _LABEL.fullmatch(label) for label in labels)
    )
