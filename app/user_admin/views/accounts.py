"""/admin/users."""

from typing import Any

from flask import Blueprint

from app.audit_log import service as audit_log
from app.audit_log.schemas import AuditItem, AuditPageQuery
from app.core.access import ConfirmationRequired, Operator, Scope
from app.crypto.tokens import generated_password
from app.store.paging import Page, Paging
from app.user_admin import addresses, errors, many_accounts, queries
from app.user_admin import service as accounts
from app.user_admin.many_accounts import BulkAction
from app.user_admin.schemas import (
    ChangedManyData,
    ChangeManySchema,
    CreatedUserData,
    CreateUserSchema,
    DeleteUserQuery,
    SetEmailSchema,
    SetPasswordData,
    SetPasswordSchema,
    UpdateUserSchema,
    UserListQuery,
)
from app.users import service
from app.users.errors import UserNotFound
from app.users.models import Account, Role
from app.users.schemas import ManagedUser
from app.web.guards import admin_may_read, admin_required, require_confirmation, require_person
from app.web.operation import answers
from app.web.paging import page_of
from app.web.request import json_body, query_args
from app.web.runtime import runtime

bp = Blueprint("admin_users", __name__, url_prefix="/api/v1/admin/users")


@bp.get("")
@admin_may_read()
@query_args(UserListQuery)
@answers(page_of(ManagedUser), name="adminListUsers")
def list_users(page: Paging, **chosen: Any) -> Page:
    """List accounts."""
    with runtime().reading() as session:
        return queries.read_accounts(session, page, queries.AccountFilter(**chosen))


@bp.post("")
@admin_required(opened_by=Scope.ADMIN, cost="hash", confirmation="if_set")
@json_body(CreateUserSchema)
@answers(CreatedUserData(), status=201, errors=errors.CREATE_USER, name="adminCreateUser")
def create(
    by: Operator,
    password: str | None,
    policy_group_id: int | None,
    must_change_password: bool,
    **about: Any,
) -> dict[str, Any]:
    """Create an account that can sign in at once; its address counts as verified.

    A program makes no administrators.
    """
    if about["role"] is Role.ADMIN:
        require_person(by)
    password, generated = _chosen(password)
    account = accounts.create(
        runtime(),
        by,
        password=password,
        must_change_password=must_change_password or generated is not None,
        policy_group=policy_group_id,
        **about,
    )
    shown: dict[str, Any] = {"user": account}
    return shown | ({"generated_password": generated} if generated else {})


@bp.get("/<row:id>")
@admin_may_read()
@answers(ManagedUser(), errors=(UserNotFound,), name="adminGetUser")
def show(id: int) -> Account:
    """Return one account."""
    with runtime().reading() as session:
        return service.get(session, id)


@bp.patch("/<row:id>")
@admin_required(opened_by=Scope.ADMIN)
@json_body(UpdateUserSchema)
@answers(ManagedUser(), errors=(*errors.UPDATE_USER, ConfirmationRequired), name="adminUpdateUser")
def update(by: Operator, id: int, **changes: Any) -> Account:
    """Change an account: all that is given, or nothing.

    Another status, verification or forced change ends its sessions; role, quota and group do not.
    Making an administrator may ask for a confirmation. A program changes neither roles nor whether
    an address is verified, and no administrator's account.
    """
    if changes.keys() & {"role", "email_verified"}:
        require_person(by)
    if changes.get("role") is Role.ADMIN:
        require_confirmation(by)
    return accounts.update(runtime(), by, id, **changes)


@bp.put("/<row:id>/email")
@admin_required(confirmation="if_set")
@json_body(SetEmailSchema)
@answers(ManagedUser(), errors=errors.SET_EMAIL, name="adminSetUserEmail")
def set_email(by: Operator, id: int, email: str, is_verified: bool) -> Account:
    """Replace the address of an account; a notice goes to the old one, and sessions go on."""
    return addresses.set_email(runtime(), by, id, email, is_verified=is_verified)


@bp.put("/<row:id>/password")
@admin_required(cost="hash", confirmation="if_set")
@json_body(SetPasswordSchema)
@answers(SetPasswordData(), errors=errors.SET_PASSWORD, name="adminSetUserPassword")
def set_password(
    by: Operator, id: int, password: str | None, must_change_password: bool
) -> dict[str, str]:
    """Set the password of an account and end its sessions; a generated one must be changed."""
    password, generated = _chosen(password)
    is_temporary = must_change_password or generated is not None
    accounts.set_password(runtime(), by, id, password, must_change_password=is_temporary)
    return {"generated_password": generated} if generated else {}


@bp.post("/<row:id>/password-reset-mail")
@admin_required(opened_by=Scope.ADMIN)
@answers(errors=errors.SEND_RESET_MAIL, name="adminSendPasswordResetMail")
def send_reset_mail(by: Operator, id: int) -> None:
    """Mail the account the link by which its owner sets a new password."""
    addresses.send_reset_mail(runtime(), by, id)


@bp.get("/<row:id>/audit-logs")
@admin_may_read()
@query_args(AuditPageQuery)
@answers(page_of(AuditItem), errors=(UserNotFound,), name="adminListUserAuditLogs")
def list_entries(id: int, page: Paging) -> Page:
    """List what an account did, and what was done to it."""
    return audit_log.read_page_of_account(runtime(), id, page)


@bp.post("/bulk")
@admin_required(opened_by=Scope.ADMIN)
@json_body(ChangeManySchema)
@answers(
    ChangedManyData(), errors=(*errors.CHANGE_MANY, ConfirmationRequired), name="adminChangeUsers"
)
def change_many(by: Operator, action: BulkAction, **which: Any) -> many_accounts.BulkOutcome:
    """Change up to 200 accounts; those that are refused keep none of the others back."""
    if action is BulkAction.DELETE:
        require_confirmation(by)
    return many_accounts.change(runtime(), by, action=action, **which)


@bp.delete("/<row:id>")
@admin_required(confirmation="if_set")
@query_args(DeleteUserQuery)
@answers(errors=errors.DELETE_USER, name="adminDeleteUser")
def delete(by: Operator, id: int, confirm: str | None) -> None:
    """Delete an account with everything that belongs to it."""
    accounts.delete(runtime(), by, id, confirm=confirm)


def _chosen(password: str | None) -> tuple[str, str | None]:
    """Return the password to set, and once more if it was generated, for want of a given one."""
    if password and password.strip():
        return password, None
    generated = generated_password()
    return generated, generated
