"""Which languages and time zones a preference may name (spec 04 §2).

Both lists come with pinned packages, so that every instance judges alike, with or without a time
zone database of its own.
"""

from importlib import resources

from langcodes.tag_parser import LanguageTagError, parse_tag

LONGEST_LANGUAGE_TAG = 255
THE_BROWSERS_ZONE = "browser"

# The file zoneinfo itself reads for `available_timezones`, without what a machine adds.
_ZONES = frozenset(resources.files("tzdata").joinpath("zones").read_text("ascii").split())


def language_tag(text: str) -> str:
    """Return a well-formed BCP 47 tag in its canonical case, whether registered or not.

    Raises: ValueError.
    Source: RFC 5646 §2.1.1, §2.2.9.
    """
    # langcodes takes an underscore for a hyphen, and digits in a language; RFC 5646 does not.
    if not text or len(text) > LONGEST_LANGUAGE_TAG or not set(text) <= _TAG_CHARACTERS:
        raise ValueError("is not a language tag")
    try:
        subtags = parse_tag(text)  # type: ignore[no-untyped-call]
    except LanguageTagError:
        raise ValueError("is not a language tag") from None
    _require_no_repetition(subtags)
    kind, first = subtags[0]
    languages = [subtag for kind, subtag in subtags if kind in {"language", "extlang"}]
    # Those of four letters are reserved; longer ones are to be registered, and none is (§2.2.1).
    if "-" not in first and not all(name.isalpha() and len(name) <= 3 for name in languages):
        raise ValueError("is not a language tag")
    if kind == "grandfathered":
        return _grandfathered(first)
    return "-".join(subtag for _, subtag in subtags)


def time_zone(text: str) -> str:
    """Return the exact name of an IANA time zone, or `browser`, which follows the client.

    Raises: ValueError.
    """
    if text != THE_BROWSERS_ZONE and text not in _ZONES:
        raise ValueError("is not an IANA time zone")
    return text


_TAG_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-")


def _require_no_repetition(subtags: list[tuple[str, str]]) -> None:
    """Refuse a variant or the letter of an extension that occurs twice (RFC 5646 §2.2.9)."""
    singular = [
        (kind, subtag if kind == "variant" else subtag[0])
        for kind, subtag in subtags
        if kind in {"variant", "extension"}
    ]
    if len(set(singular)) < len(singular):
        raise ValueError("repeats a subtag")


def _grandfathered(tag: str) -> str:
    """Return a tag of the old registry in the case RFC 5646 §2.1.1 gives every subtag."""
    first, *others = tag.split("-")
    cased = [other.upper() if len(other) == 2 else other for other in others]
    return "-".join([first, *(cased if len(first) > 1 else others)])
