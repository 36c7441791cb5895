"""/auth/activity, /auth/export, /auth/lock, /auth/account."""

from typing import Any

from flask import Blueprint, Response, request

from app.core.access import Principal, Program, Scope
from app.own_data import activity, erasure, errors, export, lockdown
from app.own_data.models import ArchiveFormat
from app.own_data.schemas import (
    ActivityItem,
    ActivityQuery,
    DeleteAccountSchema,
    ExportData,
    ExportQuery,
)
from app.settings import keys
from app.store.paging import Page, Paging
from app.web import cookies
from app.web.guards import login_required
from app.web.operation import answers
from app.web.paging import page_of
from app.web.peer import client
from app.web.request import json_body, query_args
from app.web.runtime import runtime

bp = Blueprint("own_data", __name__, url_prefix="/api/v1/auth")


@bp.get("/activity")
@login_required(opened_by=Scope.PROFILE_READ)
@query_args(ActivityQuery)
@answers(page_of(ActivityItem), name="getActivity")
def list_activity(principal: Principal | Program, page: Paging, **chosen: Any) -> Page:
    """List what the account did, and what others did to it, newest first.

    A sign-in with a wrong password is there as well, at most twenty an hour.
    """
    return activity.read_page(runtime(), principal.account, page, **chosen)


@bp.get("/export")
@login_required(enabled_by=keys.ACCOUNT_EXPORT_ENABLED, confirmation="always")
@query_args(ExportQuery)
@answers(
    ExportData(),
    media_type=tuple(export.MEDIA_TYPES.values()),
    errors=errors.EXPORT,
    name="exportData",
)
def export_data(principal: Principal, kind: ArchiveFormat) -> Response:
    """Return everything that is stored about the account and is not secret, as a file.

    The archive also has the picture, the activity as CSV, and a text that explains the members.
    Five an hour; the owner is told by mail.
    """
    rt = runtime()
    name = export.file_name(rt, principal.account, kind)
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    pieces = () if request.method == "HEAD" else export.own(rt, principal, kind, client())
    return Response(pieces, content_type=export.MEDIA_TYPES[kind], headers=headers)


@bp.post("/lock")
@login_required()
@answers(name="lockAccount")
def lock(principal: Principal) -> None:
    """Sign out everywhere and void every link; the password must be changed.

    For an owner who fears that somebody else is in the account. A link to set a new password is
    mailed.
    """
    lockdown.lock(runtime(), principal, client())
    cookies.sign_out()


@bp.delete("/account")
@login_required(enabled_by=keys.ACCOUNT_DELETION_ENABLED, confirmation="always")
@json_body(DeleteAccountSchema)
@answers(errors=errors.DELETE_ACCOUNT, name="deleteAccount")
def delete_account(principal: Principal, confirm: str) -> None:
    """Delete the account with everything that belongs to it, at once and for good.

    `confirm` is the username. The name and the address can be used again.
    """
    erasure.delete_own(runtime(), principal, confirm=confirm)
    cookies.sign_out()
