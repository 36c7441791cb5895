"""Redirects of a browser to a page of the frontend."""

from collections.abc import Mapping
from urllib.parse import quote, urlencode

from flask import Response

from app.core.runtime import Runtime
from app.web import site

LOGIN_PAGE = "/login"


def to_page(rt: Runtime, path: str, query: Mapping[str, str]) -> Response:
    """Redirect to a path of the site, with a query."""
    if query:
        path = f"{path}?{urlencode(query, quote_via=quote, safe='')}"
    response = Response(status=302)
    response.headers["Location"] = site.link(rt, path)
    # The page must not learn the token in this request's URL from the Referer.
    response.headers["Referrer-Policy"] = "no-referrer"
    return response
