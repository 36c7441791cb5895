"""/auth/contact-verification and /auth/email/change."""

from typing import Any

from flask import Blueprint, request
from flask.typing import ResponseReturnValue

from app.contact_verification import service
from app.contact_verification.errors import EmailUnchanged, NoPendingChange
from app.contact_verification.responses import to_frontend
from app.contact_verification.schemas import ConfirmQuery, RequestEmailChangeSchema
from app.core.access import AccountDisabled, Principal
from app.users import responses as users
from app.users.errors import (
    EmailBlocked,
    EmailExists,
    EmailInvalid,
    EmailNotAllowlisted,
    PendingActivation,
)
from app.users.schemas import UserInfo
from app.web import guards
from app.web.anonymous import anonymous_route
from app.web.envelope import ok
from app.web.guards import login_required
from app.web.operation import answers, redirects
from app.web.padding import minimum_duration
from app.web.peer import client
from app.web.request import json_body, query_args
from app.web.runtime import runtime
from app.web.schema import MessageData

RESENT = "If the last mail is not too fresh, a new one is on its way to the new address."

bp = Blueprint("contact_verification", __name__, url_prefix="/api/v1/auth")


@bp.get("/contact-verification/confirm")
@anonymous_route()
@query_args(ConfirmQuery)
@redirects(errors=(AccountDisabled, EmailExists), name="confirmEmail")
def confirm(query: dict[str, Any]) -> ResponseReturnValue:
    """Use up the link of a mail, then redirect to the frontend's page that shows the result.

    The page is `/settings/security` if the browser is signed in, else `/login`. Its query has
    `contact_verification`: `register-activated`, `email-changed` with the new address as `email`,
    `missing`, `invalid` or `expired`. HEAD neither uses up the link nor reveals its state.
    """
    rt, is_signed_in = runtime(), guards.is_signed_in()
    # Mail scanners probe links with HEAD.
    is_followed = request.method != "HEAD"
    result = service.confirm(rt, query["token"], client()) if is_followed else None
    return to_frontend(rt, result, is_signed_in=is_signed_in)


@bp.post("/email/change")
@login_required()
@json_body(RequestEmailChangeSchema)
@answers(
    UserInfo(),
    errors=(
        EmailInvalid,
        PendingActivation,
        EmailUnchanged,
        EmailBlocked,
        EmailNotAllowlisted,
        EmailExists,
    ),
    name="requestEmailChange",
)
def request_change(principal: Principal, body: dict[str, Any]) -> ResponseReturnValue:
    """Request a new e-mail address; it takes effect once the link sent to it is followed."""
    rt = runtime()
    account = service.request_change(rt, principal, **body, client=client())
    return ok(users.user_info(rt, account))


@bp.post("/email/change/resend")
@minimum_duration
@login_required()
@answers(
    MessageData(),
    errors=(NoPendingChange, PendingActivation, EmailBlocked, EmailExists),
    name="resendEmailChange",
)
def resend_change(principal: Principal) -> ResponseReturnValue:
    """Send the mail to the pending address again."""
    service.resend_change(runtime(), principal, client=client())
    return ok({"message": RESENT})
