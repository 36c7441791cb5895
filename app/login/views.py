"""/auth/login."""

from typing import Any

from flask import Blueprint
from flask.typing import ResponseReturnValue

from app.login import service
from app.login.errors import CredentialsFailed, PasswordLoginDisabled, PendingActivation
from app.login.responses import login_response
from app.login.schemas import LoginData, LoginSchema
from app.sessions.errors import AccountDisabled
from app.web.anonymous import anonymous_route
from app.web.operation import answers
from app.web.padding import minimum_duration
from app.web.peer import client
from app.web.request import json_body
from app.web.runtime import runtime

bp = Blueprint("login", __name__, url_prefix="/api/v1/auth")


@bp.post("/login")
@minimum_duration
@anonymous_route(source_check=True)
@json_body(LoginSchema)
@answers(
    LoginData(),
    errors=(PasswordLoginDisabled, CredentialsFailed, AccountDisabled, PendingActivation),
)
def log_in(body: dict[str, Any]) -> ResponseReturnValue:
    """Sign in with username or e-mail address and password."""
    return login_response(service.log_in(runtime(), **body, client=client()))
