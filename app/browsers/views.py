"""/auth/mfa/devices."""

from flask import Blueprint
from marshmallow import fields

from app.browsers import service
from app.browsers.errors import BrowserNotFound
from app.browsers.schemas import ForgottenBrowsersData, RememberedBrowserItem
from app.browsers.service import KnownBrowser
from app.core.access import Principal
from app.web import cookies
from app.web.guards import login_required
from app.web.operation import answers
from app.web.peer import client
from app.web.runtime import runtime

bp = Blueprint("browsers", __name__, url_prefix="/api/v1/auth/mfa/devices")


@bp.get("")
@login_required()
@answers(fields.List(fields.Nested(RememberedBrowserItem)), name="listMfaDevices")
def list_devices(principal: Principal) -> list[KnownBrowser]:
    """List the browsers that are remembered: signing in with them needs no second step."""
    return service.list_remembered(runtime(), principal.user_id, cookies.device_cookie())


@bp.delete("")
@login_required(confirmation="if_set")
@answers(ForgottenBrowsersData(), name="removeMfaDevices")
def remove_devices(principal: Principal) -> dict[str, int]:
    """Remember none of the browsers any more."""
    return {"removed": service.forget_all(runtime(), principal, client())}


@bp.delete("/<row:device_id>")
@login_required(confirmation="if_set")
@answers(errors=(BrowserNotFound,), name="removeMfaDevice")
def remove_device(principal: Principal, device_id: int) -> None:
    """Remember a browser no more."""
    service.forget(runtime(), principal, device_id, client())
