"""/auth/register and /auth/register/resend."""

from flask import Blueprint

from app.contact_verification import tokens
from app.registration import errors, service
from app.users.models import Account
from app.users.schemas import NewAccountSchema, UserInfo
from app.web import cookies
from app.web.guards import anonymous_route, minimum_duration
from app.web.operation import answers
from app.web.peer import client
from app.web.request import json_body
from app.web.runtime import runtime
from app.web.schema import MAX_INPUT_LENGTH, MessageData, RequestSchema, text

RESENT = (
    "If an account of this name is waiting for activation, a new mail is on its way, unless one "
    "was sent a moment ago."
)


class ResendActivationSchema(RequestSchema):
    """POST /auth/register/resend."""

    identifier = text(MAX_INPUT_LENGTH)


bp = Blueprint("registration", __name__, url_prefix="/api/v1/auth")


@bp.post("/register")
@minimum_duration
@anonymous_route(source_check=True)
@json_body(NewAccountSchema)
@answers(UserInfo(), status=201, errors=errors.REGISTER)
def register(username: str, email: str, password: str) -> Account:
    """Register an account; nobody is signed in.

    If activation is required, the account can be used once the mailed link has been followed.
    """
    rt = runtime()
    browser = cookies.keep_browser_id(tokens.longest_life(rt))
    return service.register(
        rt, username=username, email=email, password=password, client=client(), browser=browser
    )


@bp.post("/register/resend")
@minimum_duration
@anonymous_route(source_check=True)
@json_body(ResendActivationSchema)
@answers(MessageData(), errors=errors.RESEND)
def resend_activation(identifier: str) -> dict[str, str]:
    """Send the activation mail again; the answer never reveals whether it exists."""
    rt = runtime()
    cookies.keep_browser_id(tokens.longest_life(rt))  # as long as the new link lives
    service.resend_activation(rt, identifier=identifier, client=client())
    return {"message": RESENT}
