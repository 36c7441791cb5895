"""/auth/check and /auth/setup."""

import logging
from dataclasses import asdict
from typing import Any

from flask import Blueprint, request
from flask.typing import ResponseReturnValue

from app.core.errors import BadRequest
from app.core.runtime import Runtime
from app.setup import service
from app.setup.errors import SystemAlreadyInitialized
from app.setup.schemas import PublicStateData
from app.users import responses as users
from app.users.errors import EmailInvalid, PasswordGuessable, PasswordInvalid, UsernameInvalid
from app.users.schemas import NewAccountSchema, UserInfo
from app.web import origin, site
from app.web.anonymous import anonymous_route
from app.web.envelope import ok
from app.web.operation import answers
from app.web.padding import minimum_duration
from app.web.peer import client
from app.web.request import json_body
from app.web.runtime import runtime

log = logging.getLogger(__name__)

bp = Blueprint("setup", __name__, url_prefix="/api/v1/auth")


@bp.post("/check")
@anonymous_route()
@answers(PublicStateData(), name="getSetupState")
def check() -> ResponseReturnValue:
    """Report how far the installation is set up and which ways in are open."""
    return ok(asdict(service.public_state(runtime())))


@bp.post("/setup")
@minimum_duration
@anonymous_route()
@json_body(NewAccountSchema)
@answers(
    UserInfo(),
    status=201,
    errors=(
        SystemAlreadyInitialized,
        PasswordInvalid,
        PasswordGuessable,
        UsernameInvalid,
        EmailInvalid,
    ),
    name="createFirstAdministrator",
)
def set_up(body: dict[str, Any]) -> ResponseReturnValue:
    """Create the first administrator; possible only while there is no account."""
    rt: Runtime = runtime()
    account = service.create_first_admin(rt, **body, origin=_origin_of_site(), client=client())
    return ok(users.user_info(rt, account), 201)


def _origin_of_site() -> str | None:
    """Return the Origin header, else the origin the request was sent to, else None (A12)."""
    try:
        return site.site_origin(request.headers.get("Origin", ""))
    except ValueError:
        pass
    try:
        return origin.own_origin()
    except BadRequest:
        log.warning("the site's address could not be learnt from the set-up request")
        return None
