"""/auth/invitations and /admin/users/invitations."""

from typing import Any

from flask import Blueprint

from app.core.access import Operator, Scope
from app.invitations import errors, service
from app.invitations.models import Invitation
from app.invitations.schemas import (
    AcceptInvitationSchema,
    AdminInvitation,
    CreatedInvitationData,
    CreateInvitationSchema,
    InvitationData,
    InvitationListQuery,
)
from app.store.paging import Page, Paging
from app.users.models import Account
from app.users.schemas import UserInfo
from app.web.guards import admin_may_read, admin_required, anonymous_route
from app.web.operation import answers
from app.web.paging import page_of
from app.web.peer import client
from app.web.request import json_body, query_args
from app.web.runtime import runtime

bp = Blueprint("invitations", __name__, url_prefix="/api/v1/auth")
admin_bp = Blueprint("admin_invitations", __name__, url_prefix="/api/v1/admin/users/invitations")


@bp.get("/invitations/<token>")
@anonymous_route()
@answers(InvitationData(), errors=errors.CLOSED, name="getInvitation")
def show(token: str) -> Invitation:
    """Show who an open invitation is for; works in any set-up state and with any settings."""
    return service.look_up(runtime(), token)


@bp.post("/invitations/<token>/accept")
@anonymous_route(source_check=True)
@json_body(AcceptInvitationSchema)
@answers(UserInfo(), status=201, errors=errors.ACCEPT, name="acceptInvitation")
def accept(token: str, username: str, password: str) -> Account:
    """Create the invited account, even while registration is closed; nobody is signed in."""
    return service.accept(runtime(), token, username=username, password=password, client=client())


@admin_bp.get("")
@admin_may_read()
@query_args(InvitationListQuery)
@answers(page_of(AdminInvitation), name="adminListInvitations")
def list_invitations(page: Paging, **chosen: Any) -> Page:
    """List invitations, the newest first."""
    return service.read_page(runtime(), page, **chosen)


@admin_bp.post("")
@admin_required(opened_by=Scope.ADMIN)
@json_body(CreateInvitationSchema)
@answers(CreatedInvitationData(), status=201, errors=errors.CREATE, name="adminCreateInvitation")
def create(by: Operator, email: str, ttl_seconds: int | None) -> service.CreatedInvitation:
    """Invite an address by mail; earlier invitations of it are revoked."""
    return service.create(runtime(), by, email=email, ttl_seconds=ttl_seconds)


@admin_bp.post("/<row:id>/revoke")
@admin_required(opened_by=Scope.ADMIN)
@answers(AdminInvitation(), errors=errors.REVOKE, name="adminRevokeInvitation")
def revoke(by: Operator, id: int) -> Invitation:
    """Take an open invitation back; its link fails from now on."""
    return service.revoke(runtime(), by, id)


@admin_bp.post("/<row:id>/resend")
@admin_required(opened_by=Scope.ADMIN)
@answers(CreatedInvitationData(), status=201, errors=errors.RESEND, name="adminResendInvitation")
def resend(by: Operator, id: int) -> service.CreatedInvitation:
    """Invite the address once more, by a new invitation that replaces this one."""
    return service.resend(runtime(), by, id)
