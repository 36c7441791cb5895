"""Rules for usernames and e-mail addresses (decisions A13, E8)."""

import re
from dataclasses import dataclass

from app.core import email_address
from app.users.errors import EmailInvalid, UsernameInvalid

_USERNAME = re.compile(r"[A-Za-z0-9_.-]{2,64}")


@dataclass(frozen=True)
class Identifier:
    """What somebody typed to say who they are; `is_email` decides which column it is looked up in.

    `key` is the one spelling all variants in case, of ASCII, and surrounding space share.
    """

    key: str
    is_email: bool


def username(typed: str) -> str:
    """Return the username to store, as typed but for surrounding space.

    Raises: UsernameInvalid.
    """
    name = typed.strip()
    if not _USERNAME.fullmatch(name):
        raise UsernameInvalid
    return name


def username_key(name: str) -> str:
    """Return the form usernames are unique by."""
    return _lower(name)


def email(typed: str) -> str:
    """Return the address to store: lower case, an internationalised domain in punycode.

    Raises: EmailInvalid.
    """
    try:
        return email_address.normalized(typed)
    except ValueError:
        raise EmailInvalid from None


def is_listed(address: str, entries: tuple[str, ...]) -> bool:
    """Tell whether a normalised address, or exactly its domain, is among policy entries."""
    return address in entries or address.rpartition("@")[2] in entries


def identifier(typed: str) -> Identifier:
    """Return how to look up what was typed at a login; never fails, nonsense is just not found."""
    text = typed.strip()
    if "@" not in text:
        return Identifier(username_key(text), is_email=False)
    try:
        return Identifier(email(text), is_email=True)
    except EmailInvalid:
        return Identifier(_lower(text), is_email=True)


def attempts_key(user_id: int) -> str:
    """Return the name an account's failed secrets are counted under, however it was spelled."""
    return f"user:{user_id}"


def attempts_key_of_nobody(who: Identifier) -> str:
    """Like `attempts_key`, for who is unknown: so the limit tells nothing either (decision E20)."""
    return f"name:{who.key}"


def _lower(text: str) -> str:
    """Return ASCII in lower case, and no other letter as one of ASCII: the Kelvin sign is no k."""
    return text.lower() if text.isascii() else text
