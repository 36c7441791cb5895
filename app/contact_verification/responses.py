"""Where the browser is redirected after it followed a mailed link (spec 01 §4)."""

from flask import Response

from app.contact_verification.service import Confirmed, Outcome
from app.core.runtime import Runtime
from app.web.errors import note_failure
from app.web.redirects import LOGIN_PAGE, to_page

SECURITY_PAGE = "/settings/security"


def to_frontend(rt: Runtime, confirmed: Confirmed | None, *, is_signed_in: bool) -> Response:
    """Redirect to the page that shows the outcome; None redirects without an outcome."""
    path = SECURITY_PAGE if is_signed_in else LOGIN_PAGE
    query = {}
    if confirmed is not None:
        query["contact_verification"] = confirmed.outcome.value
        if confirmed.outcome in (Outcome.MISSING, Outcome.INVALID, Outcome.EXPIRED):
            note_failure(confirmed.outcome.value)
        if confirmed.new_email is not None:
            query["email"] = confirmed.new_email
    return to_page(rt, path, query)
