"""/auth/invitations."""

from flask import Blueprint

from app.invitations import errors, service
from app.invitations.models import Invitation
from app.invitations.schemas import AcceptInvitationSchema, InvitationData
from app.users.models import Account
from app.users.schemas import UserInfo
from app.web.guards import anonymous_route
from app.web.operation import answers
from app.web.peer import client
from app.web.request import json_body
from app.web.runtime import runtime

bp = Blueprint("invitations", __name__, url_prefix="/api/v1/auth")


@bp.get("/invitations/<token>")
@anonymous_route()
@answers(InvitationData(), errors=errors.CLOSED, name="getInvitation")
def show(token: str) -> Invitation:
    """Show whom an open invitation is for; works in any set-up state and with any settings."""
    return service.look_up(runtime(), token)


@bp.post("/invitations/<token>/accept")
@anonymous_route(source_check=True)
@json_body(AcceptInvitationSchema)
@answers(UserInfo(), status=201, errors=errors.ACCEPT, name="acceptInvitation")
def accept(token: str, username: str, password: str) -> Account:
    """Create the invited account, even while registration is closed; nobody is signed in."""
    return service.accept(runtime(), token, username=username, password=password, client=client())
