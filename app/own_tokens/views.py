"""/auth/tokens: the caller's own access tokens."""

from collections.abc import Sequence
from typing import Any

from flask import Blueprint

from app.access_tokens import errors
from app.access_tokens.models import AccessToken
from app.access_tokens.schemas import (
    CreatedTokenData,
    CreateTokenSchema,
    RemovedTokensData,
    RenameTokenSchema,
    TokenInfo,
)
from app.core.access import Principal
from app.own_tokens import service
from app.settings import keys
from app.web.guards import login_required
from app.web.operation import answers
from app.web.peer import client
from app.web.request import json_body
from app.web.runtime import runtime

bp = Blueprint("own_tokens", __name__, url_prefix="/api/v1/auth/tokens")


@bp.get("")
@login_required()
@answers(TokenInfo(many=True), name="listTokens")
def list_tokens(principal: Principal) -> Sequence[AccessToken]:
    """List the account's access tokens, newest first; expired ones for 30 days."""
    return service.list_own(runtime(), principal)


@bp.post("")
@login_required(enabled_by=keys.ACCESS_TOKENS_ENABLED, confirmation="always")
@json_body(CreateTokenSchema)
@answers(CreatedTokenData(), status=201, errors=errors.CREATE, name="createToken")
def create(principal: Principal, **about: Any) -> dict[str, Any]:
    """Make an access token, which is shown only in this answer.

    An account can have 50. A scope of administration is only for administrators. The owner is told
    by mail.
    """
    text, token = service.create(runtime(), principal, client(), **about)
    return {"token": text, "info": token}


@bp.patch("/<row:id>")
@login_required()
@json_body(RenameTokenSchema)
@answers(TokenInfo(), errors=errors.RENAME, name="renameToken")
def rename(principal: Principal, id: int, name: str) -> AccessToken:
    """Rename an access token."""
    return service.rename(runtime(), principal, client(), id, name)


@bp.delete("/<row:id>")
@login_required()
@answers(errors=(errors.AccessTokenNotFound,), name="deleteToken")
def remove(principal: Principal, id: int) -> None:
    """Remove an access token; it opens nothing from now on."""
    service.remove(runtime(), principal, client(), id)


@bp.delete("")
@login_required()
@answers(RemovedTokensData(), name="deleteTokens")
def remove_all(principal: Principal) -> dict[str, int]:
    """Remove all access tokens of the account."""
    return {"removed": service.remove_all(runtime(), principal, client())}
