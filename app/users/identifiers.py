"""Rules for usernames and e-mail addresses."""

import re
from dataclasses import dataclass

from app.core import email_address
from app.users.errors import EmailInvalid, UsernameInvalid

_USERNAME = re.compile(r"[A-Za-z0-9_.-]{2,64}")


@dataclass(frozen=True)
class Identifier:
    """A login identifier as typed; `is_email` decides which column it is looked up in.

    `key` is the canonical form, shared by all spellings that differ only in ASCII case or
    surrounding whitespace.
    """

    key: str
    is_email: bool


def username(typed: str) -> str:
    """Validate a username and return it as stored: as typed, without surrounding whitespace.

    Raises: UsernameInvalid.
    """
    name = typed.strip()
    if not _USERNAME.fullmatch(name):
        raise UsernameInvalid
    return name


def username_key(name: str) -> str:
    """Return the form in which usernames are compared and unique."""
    return _lower(name)


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


def identifier(typed: str) -> Identifier:
    """Parse what was typed at a login; never fails, as an invalid identifier is just not found."""
    text = typed.strip()
    if "@" not in text:
        return Identifier(username_key(text), is_email=False)
    try:
        return Identifier(email(text), is_email=True)
    except EmailInvalid:
        return Identifier(_lower(text), is_email=True)


def attempts_key(user_id: int) -> str:
    """Return the key for counting an account's failed attempts, whichever identifier was typed."""
    return f"user:{user_id}"


def attempts_key_for_unknown(who: Identifier) -> str:
    """Like `attempts_key`, for no account, so that the limit reveals nothing."""
    return f"name:{who.key}"


def _lower(text: str) -> str:
    """Lower-case only ASCII text: `str.lower` would turn the Kelvin sign into an ASCII k."""
    return text.lower() if text.isascii() else text
