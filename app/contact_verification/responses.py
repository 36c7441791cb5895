"""Where a browser is sent after the link of a mail (spec 01 §4)."""

from collections.abc import Mapping
from urllib.parse import quote, urlencode

from flask import Response

from app.contact_verification.service import Confirmed, Outcome
from app.core.runtime import Runtime
from app.mail import service as mail
from app.web.errors import note_failure

# Pages of the frontend.
SECURITY_PAGE = "/settings/security"
LOGIN_PAGE = "/login"


def to_frontend(rt: Runtime, confirmed: Confirmed | None, *, is_signed_in: bool) -> Response:
    """Redirect to the page that tells what came of it; None tells nothing."""
    path = SECURITY_PAGE if is_signed_in else LOGIN_PAGE
    told = {}
    if confirmed is not None:
        told["contact_verification"] = confirmed.outcome.value
        if confirmed.outcome in (Outcome.MISSING, Outcome.INVALID, Outcome.EXPIRED):
            note_failure(confirmed.outcome.value)
        if confirmed.new_email is not None:
            told["email"] = confirmed.new_email
    return to_page(rt, path, told)


def to_page(rt: Runtime, path: str, told: Mapping[str, str]) -> Response:
    """Redirect to a path of the site, with what it is told as its query."""
    if told:
        path = f"{path}?{urlencode(told, quote_via=quote, safe='')}"
    response = Response(status=302)
    response.headers["Location"] = mail.site_link(rt, path)
    # The page must not learn the token that stands in this request's address.
    response.headers["Referrer-Policy"] = "no-referrer"
    return response
