"""PUT /auth/password and /auth/password/reset."""

from typing import Any

from flask import Blueprint
from flask.typing import ResponseReturnValue

from app.contact_verification.errors import (
    ContactVerificationExpired,
    ContactVerificationInvalid,
)
from app.core.access import AccountDisabled, Principal
from app.login.errors import CredentialsFailed, PasswordLoginDisabled
from app.passwords import service
from app.passwords.errors import PasswordUnchanged
from app.passwords.schemas import (
    ChangePasswordSchema,
    ConfirmPasswordResetSchema,
    RequestPasswordResetSchema,
)
from app.sessions.schemas import RefreshedData
from app.users.errors import EmailInvalid, PasswordGuessable, PasswordInvalid
from app.web import cookies
from app.web.anonymous import anonymous_route
from app.web.envelope import ok
from app.web.guards import login_required
from app.web.operation import answers
from app.web.padding import minimum_duration
from app.web.peer import client
from app.web.request import json_body
from app.web.runtime import runtime
from app.web.schema import MessageData

REQUESTED = "If an account has this e-mail address, a link to set a new password is on its way."
CONFIRMED = "The password was changed. Sign in with the new one."

bp = Blueprint("passwords", __name__, url_prefix="/api/v1/auth")


@bp.put("/password")
@login_required(during_password_change=True)
@json_body(ChangePasswordSchema)
@answers(
    RefreshedData(),
    errors=(CredentialsFailed, PasswordUnchanged, PasswordInvalid, PasswordGuessable),
)
def change_password(principal: Principal, body: dict[str, Any]) -> ResponseReturnValue:
    """Change the password; every session ends and a new one begins."""
    pair = service.change_password(runtime(), principal, **body, client=client())
    return cookies.write(ok({"expires_in": pair.access_seconds}), pair)


@bp.post("/password/reset/request")
@minimum_duration
@anonymous_route(source_check=True)
@json_body(RequestPasswordResetSchema)
@answers(MessageData(), errors=(PasswordLoginDisabled, EmailInvalid), name="requestPasswordReset")
def request_reset(body: dict[str, Any]) -> ResponseReturnValue:
    """Send a link to set a new password; the answer never reveals whether there is an account."""
    service.request_reset(runtime(), **body, client=client())
    return ok({"message": REQUESTED})


@bp.post("/password/reset/confirm")
@anonymous_route(source_check=True)
@json_body(ConfirmPasswordResetSchema)
@answers(
    MessageData(),
    errors=(
        PasswordLoginDisabled,
        PasswordInvalid,
        PasswordGuessable,
        ContactVerificationInvalid,
        ContactVerificationExpired,
        AccountDisabled,
    ),
    name="confirmPasswordReset",
)
def confirm_reset(body: dict[str, Any]) -> ResponseReturnValue:
    """Set a new password by the link of a mail; every session ends and nobody is signed in."""
    service.confirm_reset(runtime(), **body, client=client())
    return ok({"message": CONFIRMED})
