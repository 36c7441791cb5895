"""PUT /auth/password and /auth/password/reset."""

from flask import Blueprint

from app.core.access import Principal, TokenPair
from app.crypto.passwords import MAX_TYPED_PASSWORD_LENGTH
from app.passwords import errors, service
from app.sessions.schemas import RefreshedData
from app.users.schemas import EMAIL_RULE, PASSWORD_RULE
from app.web import cookies
from app.web.guards import anonymous_route, login_required, minimum_duration
from app.web.operation import answers
from app.web.peer import client
from app.web.request import json_body
from app.web.runtime import runtime
from app.web.schema import MAX_INPUT_LENGTH, MessageData, RequestSchema, text

REQUESTED = "If an account has this e-mail address, a link to set a new password is on its way."
CONFIRMED = "The password was changed. Sign in with the new one."

bp = Blueprint("passwords", __name__, url_prefix="/api/v1/auth")


class ChangePasswordSchema(RequestSchema):
    """PUT /auth/password."""

    current_password = text(MAX_TYPED_PASSWORD_LENGTH)
    new_password = text(MAX_TYPED_PASSWORD_LENGTH, **PASSWORD_RULE)


class RequestPasswordResetSchema(RequestSchema):
    """POST /auth/password/reset/request."""

    email = text(MAX_INPUT_LENGTH, **EMAIL_RULE)


class ConfirmPasswordResetSchema(RequestSchema):
    """POST /auth/password/reset/confirm."""

    token = text(MAX_INPUT_LENGTH)
    new_password = text(MAX_TYPED_PASSWORD_LENGTH, **PASSWORD_RULE)


@bp.put("/password")
@login_required(during_password_change=True)
@json_body(ChangePasswordSchema)
@answers(RefreshedData(), errors=errors.CHANGE)
def change_password(principal: Principal, current_password: str, new_password: str) -> TokenPair:
    """Change the password; every session ends and a new one begins."""
    pair = service.change_password(
        runtime(),
        principal,
        current_password=current_password,
        new_password=new_password,
        client=client(),
    )
    cookies.sign_in(pair)
    return pair


@bp.post("/password/reset/request")
@minimum_duration
@anonymous_route(source_check=True)
@json_body(RequestPasswordResetSchema)
@answers(MessageData(), errors=errors.REQUEST_RESET, name="requestPasswordReset")
def request_reset(email: str) -> dict[str, str]:
    """Send a link to set a new password; the answer never reveals whether there is an account."""
    service.request_reset(runtime(), email=email, client=client())
    return {"message": REQUESTED}


@bp.post("/password/reset/confirm")
@anonymous_route(source_check=True)
@json_body(ConfirmPasswordResetSchema)
@answers(MessageData(), errors=errors.CONFIRM_RESET, name="confirmPasswordReset")
def confirm_reset(token: str, new_password: str) -> dict[str, str]:
    """Set a new password with a mailed link; every session ends and nobody is signed in."""
    service.confirm_reset(runtime(), token=token, new_password=new_password, client=client())
    return {"message": CONFIRMED}
