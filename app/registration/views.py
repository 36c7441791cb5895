"""/auth/register and /auth/register/resend."""

from typing import Any

from flask import Blueprint
from flask.typing import ResponseReturnValue

from app.login.errors import PasswordLoginDisabled
from app.registration import service
from app.registration.errors import RegistrationDisabled
from app.registration.schemas import ResendActivationSchema
from app.setup.errors import SystemNotInitialized
from app.users import responses as users
from app.users.errors import (
    EmailBlocked,
    EmailExists,
    EmailInvalid,
    EmailNotAllowlisted,
    IdentifierExists,
    PasswordGuessable,
    PasswordInvalid,
    UsernameExists,
    UsernameInvalid,
)
from app.users.schemas import NewAccountSchema, UserInfo
from app.web.anonymous import anonymous_route
from app.web.envelope import ok
from app.web.operation import answers
from app.web.padding import minimum_duration
from app.web.peer import client
from app.web.request import json_body
from app.web.runtime import runtime
from app.web.schema import MessageData

RESENT = (
    "If an account of this name waits for its activation, a new mail is on its way"
    " unless the last one is too fresh."
)

bp = Blueprint("registration", __name__, url_prefix="/api/v1/auth")


@bp.post("/register")
@minimum_duration
@anonymous_route(source_check=True)
@json_body(NewAccountSchema)
@answers(
    UserInfo(),
    status=201,
    errors=(
        SystemNotInitialized,
        PasswordLoginDisabled,
        RegistrationDisabled,
        EmailBlocked,
        EmailNotAllowlisted,
        PasswordInvalid,
        PasswordGuessable,
        UsernameInvalid,
        EmailInvalid,
        UsernameExists,
        EmailExists,
        IdentifierExists,
    ),
)
def register(body: dict[str, Any]) -> ResponseReturnValue:
    """Register an account; nobody is signed in.

    If activation is required, the account can be used once the link of a mail has been followed.
    """
    rt = runtime()
    account = service.register(rt, **body, client=client())
    return ok(users.user_info(rt, account), 201)


@bp.post("/register/resend")
@minimum_duration
@anonymous_route(source_check=True)
@json_body(ResendActivationSchema)
@answers(MessageData(), errors=(PasswordLoginDisabled,))
def resend_activation(body: dict[str, Any]) -> ResponseReturnValue:
    """Send the activation mail again; the answer never reveals whether it exists."""
    service.resend_activation(runtime(), **body, client=client())
    return ok({"message": RESENT})
