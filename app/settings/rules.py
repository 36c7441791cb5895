"""Checks of new setting values; each returns the normal form or raises ValueError."""

import re
from urllib.parse import urlsplit

from email_validator import EmailNotValidError, validate_email

_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
LONGEST_DOMAIN = 253


def email_policy_entry(entry: str) -> str:
    """Return an exact address or exact ASCII domain in lower case; `@domain` means the domain.

    Source: spec 01 §2.1.
    """
    entry = entry.lower().removeprefix("@")
    local, separator, domain = entry.rpartition("@")
    if not _is_domain(domain) or (separator and not (local and local.isprintable())):
        raise ValueError(
            f"{entry!r} must be an e-mail address or a domain, internationalised ones in punycode"
        )
    return entry


def http_url(text: str) -> str:
    """Return an absolute http(s) address; empty stands for the default."""
    parts = urlsplit(text)
    if text and (parts.scheme not in {"http", "https"} or not parts.netloc):
        raise ValueError("must be an absolute http or https address")
    return text


def mail_address(text: str) -> str:
    """Return an address mail can be sent from; empty stands for none."""
    if not text:
        return text
    try:
        checked = validate_email(text, check_deliverability=False, globally_deliverable=False)
    except EmailNotValidError as error:
        raise ValueError(str(error)) from None
    return checked.normalized


def _is_domain(domain: str) -> bool:
    labels = domain.split(".")
    return (
        len(labels) >= 2
        and len(domain) <= LONGEST_DOMAIN
        and all(len(label) <= 63 and _LABEL.fullmatch(label) for label in labels)
    )
