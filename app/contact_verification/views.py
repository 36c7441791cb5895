"""/auth/contact-verification and /auth/email/change."""

from flask import Blueprint, Response, request
from marshmallow import fields

from app.contact_verification import errors, service, tokens
from app.contact_verification.service import LinkOutcome
from app.core.access import Principal
from app.users.models import Account
from app.users.schemas import EMAIL_RULE, UserInfo
from app.web import cookies
from app.web.errors import note_failure
from app.web.guards import anonymous_route, find_principal, login_required, minimum_duration
from app.web.operation import answers, redirects
from app.web.peer import client
from app.web.request import json_body, query_args
from app.web.runtime import runtime
from app.web.schema import MAX_INPUT_LENGTH, MessageData, RequestSchema, text
from app.web.site import LOGIN_PAGE, to_page

SECURITY_PAGE = "/settings/security"
SENT = "A mail is on its way to the address of the account."
RESENT = "A new mail is on its way to the new address, unless one was sent a moment ago."


class ConfirmQuery(RequestSchema):
    """GET /auth/contact-verification/confirm; every text is taken, since most are just unknown."""

    token = fields.String(load_default="")


class RequestEmailChangeSchema(RequestSchema):
    """POST /auth/email/change."""

    new_email = text(MAX_INPUT_LENGTH, **EMAIL_RULE)


bp = Blueprint("contact_verification", __name__, url_prefix="/api/v1/auth")


@bp.get("/contact-verification/confirm")
@anonymous_route()
@query_args(ConfirmQuery)
@redirects(errors=errors.CONFIRM, name="confirmEmail")
def confirm(token: str) -> Response:
    """Use up a mailed link, then redirect to the frontend's page that shows the result.

    The page is `/settings/security` if the browser is signed in, else `/login`. Its query has
    `contact_verification`: `register-activated`, `email-changed` with the new address as `email`,
    `missing`, `invalid` or `expired`. HEAD neither uses up the link nor reveals its state.
    """
    rt, query = runtime(), {}
    page = SECURITY_PAGE if find_principal() else LOGIN_PAGE
    # Mail scanners probe links with HEAD.
    if request.method != "HEAD":
        result = service.confirm(rt, token, client(), cookies.browser_digest())
        query["contact_verification"] = result.outcome.value
        if result.outcome in (LinkOutcome.MISSING, LinkOutcome.INVALID, LinkOutcome.EXPIRED):
            note_failure(result.outcome.value)
        if result.new_email is not None:
            query["email"] = result.new_email
    return to_page(rt, page, query)


@bp.post("/email/change")
@login_required(confirmation="if_set")
@json_body(RequestEmailChangeSchema)
@answers(UserInfo(), errors=errors.REQUEST_CHANGE, name="requestEmailChange")
def request_change(principal: Principal, new_email: str) -> Account:
    """Request a new e-mail address; it takes effect once the link sent to it is followed."""
    rt = runtime()
    browser = cookies.keep_browser_id(tokens.longest_life(rt))
    return service.request_change(
        rt, principal, new_email=new_email, client=client(), browser=browser
    )


@bp.post("/email/change/resend")
@minimum_duration
@login_required()
@answers(MessageData(), errors=errors.RESEND_CHANGE, name="resendEmailChange")
def resend_change(principal: Principal) -> dict[str, str]:
    """Send the mail to the pending address again."""
    rt = runtime()
    browser = cookies.keep_browser_id(tokens.longest_life(rt))
    service.resend_change(rt, principal, client=client(), browser=browser)
    return {"message": RESENT}


@bp.post("/email/confirmation/send")
@login_required()
@answers(MessageData(), errors=errors.SEND_CONFIRMATION, name="sendEmailConfirmation")
def send_confirmation(principal: Principal) -> dict[str, str]:
    """Mail the link that confirms the current address, which nobody has confirmed yet."""
    rt = runtime()
    browser = cookies.keep_browser_id(tokens.longest_life(rt))
    service.send_confirmation(rt, principal, client=client(), browser=browser)
    return {"message": SENT}
