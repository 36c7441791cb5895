"""Rules for usernames and e-mail addresses."""

import re

from app.core import email_address
from app.users.errors import EmailInvalid, UsernameInvalid

_USERNAME = re.compile(r"[A-Za-z0-9_.-]{2,64}")


def username(typed: str) -> str:
    """Validate a username and return it as stored: as typed, without surrounding whitespace.

    Raises: UsernameInvalid.
    """
    name = typed.strip()
    if not _USERNAME.fullmatch(name):
        raise UsernameInvalid
    return name


def username_key(name: str) -> str:
    """Return the form in which usernames are compared and unique.

    Only ASCII text is changed: `str.lower` would turn the Kelvin sign into an ASCII k.
    """
    return name.lower() if name.isascii() else name


def email(typed: str) -> str:
    """Validate an address and return it as stored: lower case, with the domain in punycode.

    Raises: EmailInvalid.
    """
    try:
        return email_address.normalized(typed)
    except ValueError:
        raise EmailInvalid from None


def is_listed(address: str, entries: tuple[str, ...]) -> bool:
    """Return whether a normalised address, or exactly its domain, is among policy entries."""
    return address in entries or address.rpartition("@")[2] in entries


def identifier(typed: str) -> str:
    """Return the username or address typed at a login in the form in which it is looked up.

    All spellings that differ only in ASCII case or surrounding whitespace share it. Never fails, as
    an invalid identifier is just not found.
    """
    try:
        return email(typed)
    except EmailInvalid:
        return username_key(typed.strip())


def attempts_key(user_id: int) -> str:
    """Return the key for counting an account's failed attempts, whichever identifier was typed."""
    return f"user:{user_id}"


def unknown_attempts_key(who: str) -> str:
    """Return the key for counting failed attempts at an identifier that no account has."""
    return f"name:{who}"
