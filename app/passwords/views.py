"""PUT /auth/password."""

from typing import Any

from flask import Blueprint
from flask.typing import ResponseReturnValue

from app.login.errors import CredentialsFailed
from app.passwords import service
from app.passwords.errors import PasswordUnchanged
from app.passwords.schemas import ChangePasswordSchema
from app.sessions.schemas import RefreshedData
from app.users.errors import PasswordInvalid
from app.web import cookies
from app.web.envelope import ok
from app.web.operation import answers
from app.web.peer import client
from app.web.principal import Principal, login_required
from app.web.request import json_body
from app.web.runtime import runtime

bp = Blueprint("passwords", __name__, url_prefix="/api/v1/auth")


@bp.put("/password")
@login_required(during_password_change=True)
@json_body(ChangePasswordSchema)
@answers(RefreshedData(), errors=(CredentialsFailed, PasswordUnchanged, PasswordInvalid))
def change_password(principal: Principal, body: dict[str, Any]) -> ResponseReturnValue:
    """Change the password; every session ends and a new one begins."""
    pair = service.change_password(
        runtime(), principal.account, principal.session_id, **body, client=client()
    )
    return cookies.write(ok({"expires_in": pair.access_seconds}), pair)
