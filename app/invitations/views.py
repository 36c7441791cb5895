"""/auth/invitations."""

from typing import Any

from flask import Blueprint
from flask.typing import ResponseReturnValue

from app.invitations import responses, service
from app.invitations.errors import (
    InvitationAccepted,
    InvitationExpired,
    InvitationInvalid,
    InvitationRevoked,
)
from app.invitations.schemas import AcceptInvitationSchema, InvitationData
from app.login.errors import PasswordLoginDisabled
from app.setup.errors import SystemNotInitialized
from app.users import responses as users
from app.users.errors import (
    EmailBlocked,
    EmailExists,
    EmailNotAllowlisted,
    IdentifierExists,
    PasswordGuessable,
    PasswordInvalid,
    UsernameExists,
    UsernameInvalid,
)
from app.users.schemas import UserInfo
from app.web.anonymous import anonymous_route
from app.web.envelope import ok
from app.web.operation import answers
from app.web.peer import client
from app.web.request import json_body
from app.web.runtime import runtime

CLOSED = (InvitationInvalid, InvitationAccepted, InvitationExpired, InvitationRevoked)

bp = Blueprint("invitations", __name__, url_prefix="/api/v1/auth")


@bp.get("/invitations/<token>")
@anonymous_route()
@answers(InvitationData(), errors=CLOSED, name="getInvitation")
def show(token: str) -> ResponseReturnValue:
    """Show whom an open invitation is for; works in any set-up state and with any settings."""
    return ok(responses.invitation(service.look_up(runtime(), token)))


@bp.post("/invitations/<token>/accept")
@anonymous_route(source_check=True)
@json_body(AcceptInvitationSchema)
@answers(
    UserInfo(),
    status=201,
    errors=(
        PasswordLoginDisabled,
        *CLOSED,
        EmailBlocked,
        EmailNotAllowlisted,
        EmailExists,
        PasswordInvalid,
        PasswordGuessable,
        SystemNotInitialized,
        UsernameInvalid,
        UsernameExists,
        IdentifierExists,
    ),
    name="acceptInvitation",
)
def accept(token: str, body: dict[str, Any]) -> ResponseReturnValue:
    """Create the invited account, even while registration is closed; nobody is signed in."""
    rt = runtime()
    account = service.accept(rt, token, **body, client=client())
    return ok(users.user_info(rt, account), 201)
