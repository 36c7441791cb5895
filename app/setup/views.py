"""/auth/check and /auth/setup."""

import logging

from flask import Blueprint, request

from app.core.errors import BadRequest
from app.setup import errors, service
from app.setup.schemas import PublicStateData
from app.setup.service import PublicState
from app.users.models import Account
from app.users.schemas import NewAccountSchema, UserInfo
from app.web import origin, site
from app.web.guards import anonymous_route, minimum_duration
from app.web.operation import answers
from app.web.peer import client
from app.web.request import json_body
from app.web.runtime import runtime

log = logging.getLogger(__name__)

bp = Blueprint("setup", __name__, url_prefix="/api/v1/auth")


@bp.post("/check")
@anonymous_route()
@answers(PublicStateData(), name="getSetupState")
def check() -> PublicState:
    """Report how far the installation is set up and which ways in are open."""
    return service.public_state(runtime())


@bp.post("/setup")
@minimum_duration
@anonymous_route()
@json_body(NewAccountSchema)
@answers(UserInfo(), status=201, errors=errors.SET_UP, name="createFirstAdministrator")
def set_up(username: str, email: str, password: str) -> Account:
    """Create the first administrator; possible only while there is no account."""
    return service.create_first_admin(
        runtime(),
        username=username,
        email=email,
        password=password,
        origin=_origin_of_site(),
        client=client(),
    )


def _origin_of_site() -> str | None:
    """Return the Origin header, else the origin the request was sent to, else None."""
    try:
        return site.site_origin(request.headers.get("Origin", ""))
    except ValueError:
        pass
    try:
        return origin.own_origin()
    except BadRequest:
        log.warning("the site's address could not be determined from the set-up request")
        return None
