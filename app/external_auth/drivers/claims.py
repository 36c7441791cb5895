"""Normalisation of what a provider says about a user to a form all providers share."""

import re
from collections.abc import Mapping
from typing import Any

from app.core.email_address import is_misread
from app.core.texts import has_controls, is_control
from app.external_auth.errors import ProviderRejected

MAX_SUBJECT_BYTES = 255
MAX_NAMESPACE_BYTES = 512
MAX_EMAIL_BYTES = 254
MAX_NAME_BYTES = 255
_ADDRESS = re.compile(r"[^@\s]+@[^@\s.]+(\.[^@\s.]+)+")
# From here on different numbers in JSON can parse to the same float, and so different users become
# one; fractions can do so at any size.
EXACT_FLOATS = 2**53


def subject(value: Any) -> str:
    """Return the provider's identifier of a user.

    Raises: ProviderRejected.
    """
    if not isinstance(value, str) or not value or has_controls(value):
        raise ProviderRejected("the subject is missing or has control characters")
    if len(value.encode()) > MAX_SUBJECT_BYTES:
        raise ProviderRejected("the subject is too long")
    return value


def namespace(value: str) -> str:
    """Return the namespace of the subjects, once it is validated.

    Raises: ProviderRejected.
    """
    if has_controls(value) or not 0 < len(value.encode()) <= MAX_NAMESPACE_BYTES:
        raise ProviderRejected("the issuer is too long")
    return value


def email(value: Any) -> str | None:
    """Return the email address, None if it is missing or blank.

    One that mail programs could read as something else counts as missing: it can be no account's.
    Raises: ProviderRejected.
    """
    if value is None:
        return None
    if not isinstance(value, str):
        raise ProviderRejected("the e-mail address is not a string")
    address = value.strip()
    if not address or is_misread(address):
        return None
    if not _ADDRESS.fullmatch(address) or has_controls(address):
        raise ProviderRejected("the e-mail address is not valid")
    if len(address.encode()) > MAX_EMAIL_BYTES:
        raise ProviderRejected("the e-mail address is too long")
    return address


def name(value: Any) -> str | None:
    """Return a cleaned display name or username; None if it is missing, blank or not a string."""
    if not isinstance(value, str):
        return None
    kept = "".join(c for c in value if not is_control(c)).strip()
    return kept.encode()[:MAX_NAME_BYTES].decode(errors="ignore").strip() or None


def flag(value: Any) -> bool:
    """Return a boolean, which some providers spell as a text; False if it is missing.

    Raises: ProviderRejected.
    """
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    if value is not None and not isinstance(value, bool):
        raise ProviderRejected("email_verified is not a boolean")
    return value is True


def text(value: Any) -> str | None:
    """Return a string without surrounding whitespace, or a number as a string; else None.

    Numbers must have been parsed without loss of precision, so fractions give None.
    """
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, float) and not (value.is_integer() and abs(value) < EXACT_FLOATS):
        return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return None


def find(answer: Mapping[str, Any], path: str) -> Any:
    """Return the value that a configured claim name points at; None if there is none.

    A leading slash makes it a JSON pointer (RFC 6901); otherwise it is a key, or a dotted path.
    """
    if path.startswith("/"):
        steps = [part.replace("~1", "/").replace("~0", "~") for part in path[1:].split("/")]
        return _walk(answer, steps)
    if path in answer:
        return answer[path]
    return _walk(answer, path.split("."))


def _walk(value: Any, steps: list[str]) -> Any:
    for step in steps:
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and re.fullmatch(r"0|[1-9][0-9]{0,5}", step):
            value = value[int(step)] if int(step) < len(value) else None
        else:
            return None
    return value
