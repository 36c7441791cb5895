"""Which language somebody reads, of those that are offered."""

from collections.abc import Sequence
from functools import lru_cache

from flask import has_request_context, request
from werkzeug.datastructures import LanguageAccept
from werkzeug.http import parse_accept_header

COOKIE = "service_language"  # what somebody has chosen on the pages
KEPT_ANSWERS = 256  # there are few, and one comes with every request


def best(tag: str | None, offered: Sequence[str]) -> str | None:
    """Return the language that a BCP 47 tag belongs to, whatever its region; None if none does."""
    wanted = (tag or "").lower().partition("-")[0]
    return next((one for one in offered if one.lower().partition("-")[0] == wanted), None)


def of_request(offered: tuple[str, ...]) -> str | None:
    """Return what the caller's browser asks for; None if for nothing here, or without a request."""
    if not has_request_context():
        return None
    chosen = request.cookies.get(COOKIE)
    if chosen in offered:
        return chosen
    return _preferred(request.headers.get("Accept-Language", ""), offered)


@lru_cache(KEPT_ANSWERS)
def _preferred(accept_language: str, offered: tuple[str, ...]) -> str | None:
    # Werkzeug's own choice prefers a later language that fits exactly to an earlier dialect.
    tags = parse_accept_header(accept_language, LanguageAccept).values()
    return next(filter(None, (best(tag, offered) for tag in tags)), None)
