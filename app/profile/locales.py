"""Which languages and time zones a preference may name.

Both rules come from pinned packages, so every instance accepts the same values, whether or not its
system has a time zone database.
"""

from importlib import resources

from langcodes.tag_parser import LanguageTagError, parse_tag

MAX_LANGUAGE_TAG_LENGTH = 255
BROWSER_ZONE = "browser"

# The list behind `zoneinfo.available_timezones`, without the zones that the system adds.
_ZONES = frozenset(resources.files("tzdata").joinpath("zones").read_text("ascii").split())


def language_tag(text: str) -> str:
    """Return a well-formed BCP 47 tag in its canonical case, whether registered or not.

    Raises: ValueError.
    Source: RFC 5646 §2.1.1, §2.2.9.
    """
    # langcodes accepts underscores for hyphens, and digits in a language; RFC 5646 does not.
    if not text or len(text) > MAX_LANGUAGE_TAG_LENGTH or not set(text) <= _TAG_CHARACTERS:
        raise ValueError("is not a language tag")
    try:
        subtags = parse_tag(text)  # type: ignore[no-untyped-call]
    except LanguageTagError:
        raise ValueError("is not a language tag") from None
    _require_no_repetition(subtags)
    kind, first = subtags[0]
    languages = [subtag for kind, subtag in subtags if kind in {"language", "extlang"}]
    # Four-letter languages are reserved; longer ones must be registered, and none is (§2.2.1).
    if "-" not in first and not all(name.isalpha() and len(name) <= 3 for name in languages):
        raise ValueError("is not a language tag")
    if kind == "grandfathered":
        return _grandfathered(first)
    return "-".join(subtag for _, subtag in subtags)


def time_zone(text: str) -> str:
    """Return `text` if it is the exact name of an IANA time zone or `browser` (the client's zone).

    Raises: ValueError.
    """
    if text != BROWSER_ZONE and text not in _ZONES:
        raise ValueError("is not an IANA time zone")
    return text


_TAG_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-")


def _require_no_repetition(subtags: list[tuple[str, str]]) -> None:
    """Refuse a variant or an extension singleton that occurs twice (RFC 5646 §2.2.9)."""
    singular = [
        (kind, subtag if kind == "variant" else subtag[0])
        for kind, subtag in subtags
        if kind in {"variant", "extension"}
    ]
    if len(set(singular)) < len(singular):
        raise ValueError("repeats a subtag")


def _grandfathered(tag: str) -> str:
    """Return a grandfathered tag with each subtag in the case of RFC 5646 §2.1.1."""
    first, *others = tag.split("-")
    cased = [other.upper() if len(other) == 2 else other for other in others]
    return "-".join([first, *(cased if len(first) > 1 else others)])
