"""Where the browser is redirected after it followed a mailed link (spec 01 §4)."""

from flask import Response

from app.contact_verification.service import ConfirmationResult, Outcome
from app.core.runtime import Runtime
from app.web.errors import note_failure
from app.web.redirects import LOGIN_PAGE, to_page

SECURITY_PAGE = "/settings/security"


def to_frontend(rt: Runtime, result: ConfirmationResult | None, *, is_signed_in: bool) -> Response:
    """Redirect to the page that shows the outcome; None redirects without an outcome."""
    path = SECURITY_PAGE if is_signed_in else LOGIN_PAGE
    query = {}
    if result is not None:
        query["contact_verification"] = result.outcome.value
        if result.outcome in (Outcome.MISSING, Outcome.INVALID, Outcome.EXPIRED):
            note_failure(result.outcome.value)
        if result.new_email is not None:
            query["email"] = result.new_email
    return to_page(rt, path, query)
