"""/admin/users/{id}/tokens: the access tokens of an account."""

from collections.abc import Sequence

from flask import Blueprint

from app.access_tokens.models import AccessToken
from app.access_tokens.schemas import RemovedTokensData, TokenInfo
from app.core.access import Operator
from app.user_admin import errors, tokens
from app.users.errors import UserNotFound
from app.web.guards import admin_may_read, admin_required
from app.web.operation import answers
from app.web.runtime import runtime

bp = Blueprint("admin_tokens", __name__, url_prefix="/api/v1/admin/users/<row:id>/tokens")


@bp.get("")
@admin_may_read()
@answers(TokenInfo(many=True), errors=(UserNotFound,), name="adminListUserTokens")
def list_tokens(id: int) -> Sequence[AccessToken]:
    """List the access tokens of an account, newest first; expired ones for 30 days."""
    return tokens.list_of(runtime(), id)


@bp.delete("/<row:token_id>")
@admin_required()
@answers(errors=errors.REMOVE_TOKEN, name="adminRemoveUserToken")
def remove(by: Operator, id: int, token_id: int) -> None:
    """Remove an access token of an account; its owner is told by mail."""
    tokens.remove(runtime(), by, id, token_id)


@bp.delete("")
@admin_required()
@answers(RemovedTokensData(), errors=errors.REMOVE_TOKENS, name="adminRemoveUserTokens")
def remove_all(by: Operator, id: int) -> dict[str, int]:
    """Remove all access tokens of an account; its owner is told by mail."""
    return {"removed": tokens.remove_all(runtime(), by, id)}
