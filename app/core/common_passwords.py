"""Passwords that an attacker tries first (NIST SP 800-63B-4 §3.1.1.2; OWASP ASVS 5.0 §6.2.4)."""

from collections.abc import Iterable
from functools import cache

from app.core.passwords import MIN_PASSWORD_LENGTH, normalized


def is_guessable(password: str, names: Iterable[str] = ()) -> bool:
    """Return whether `password` is a common one, or one of `names`, whatever the case.

    `names` are the account's username and e-mail address, perhaps as typed, with space around them;
    the local part of an address counts, too.
    """
    folded = _folded(password)
    stripped = [name.strip() for name in names]
    own = {_folded(part) for name in stripped for part in (name, name.partition("@")[0])}
    return folded in own or folded in _common_passwords()


@cache
def _common_passwords() -> frozenset[str]:
    # Imported on first use: zxcvbn ranks all of its word lists on import, some 15 MB of memory.
    from zxcvbn.frequency_lists import FREQUENCY_LISTS

    ranked = FREQUENCY_LISTS["passwords"]
    return frozenset(password for password in ranked if len(password) >= MIN_PASSWORD_LENGTH)


def _folded(text: str) -> str:
    return normalized(text).casefold()
