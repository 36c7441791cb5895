"""/health*, /public/*, and the API description with its reference page."""

import logging
from typing import Any

from flask import (
    Blueprint,
    Response,
    current_app,
    jsonify,
    make_response,
    redirect,
    render_template,
    request,
)
from flask.sansio.blueprints import BlueprintSetupState
from flask.typing import ResponseReturnValue

from app.core import product
from app.core.logs import Outage
from app.core.thread_pool import Overloaded
from app.operations import reference, service
from app.operations.reference import PageFileMissing
from app.operations.schemas import (
    FrontendConfigData,
    HealthData,
    MediaDataSupportData,
    OpenApiData,
    PasskeyEndpointsData,
    PreviewAppsData,
    QrCodeSchema,
    ReadyData,
    ThumbnailSupportData,
    WebdavSettingsData,
)
from app.operations.service import CacheUnavailable, DatabaseUnreachable
from app.web import metrics
from app.web.errors import EndpointNotFound
from app.web.guards import anonymous_route, login_required
from app.web.openapi.document import document
from app.web.operation import answers, ok, redirects
from app.web.request import json_body
from app.web.runtime import runtime

bp = Blueprint("operations", __name__)
docs = Blueprint("docs", __name__, url_prefix="/api/v1", template_folder="templates")

FRONTEND_CONFIG_SECONDS = 60
UNREADY = "gatehouse_unready"

ready_log = logging.getLogger("gatehouse.ready")


@bp.record_once
def install(state: BlueprintSetupState) -> None:
    """Keep, for one application, since when it has not been ready."""
    state.app.extensions[UNREADY] = Outage(ready_log, "not ready", "ready again")


@bp.get("/health")
@answers(HealthData(), media_type="application/json", name="getHealth")
def health() -> ResponseReturnValue:
    """Report that the process answers; checks nothing else."""
    return Response('{"status":"ok"}', content_type="application/json")


@bp.get("/health/ready")
@answers(ReadyData(), errors=(CacheUnavailable, DatabaseUnreachable), name="getReadiness")
def ready() -> dict[str, Any]:
    """Report whether database and Redis answer, and how far the installation is set up."""
    return {"status": service.readiness(runtime(), current_app.extensions[UNREADY])}


@bp.get("/health/metrics")
@answers(media_type="text/plain", name="getMetrics")
def expose_metrics() -> Response:
    """Return the metrics of all workers in Prometheus' text format."""
    return metrics.exposition(service.Dependencies(runtime()))


@bp.get("/.well-known/change-password")
@anonymous_route()
@redirects(errors=(EndpointNotFound,), name="findPasswordPage")
def change_password() -> Response:
    """Lead a password manager to where a password is changed (W3C, A Well-Known URL for that)."""
    response = Response(status=302, headers={"Location": service.security_address(runtime())})
    response.headers["Cache-Control"] = "no-store"
    return response


@bp.get("/.well-known/passkey-endpoints")
@anonymous_route()
@answers(
    PasskeyEndpointsData(),
    media_type="application/json",
    errors=(EndpointNotFound,),
    name="getPasskeyEndpoints",
)
def passkey_endpoints() -> Response:
    """Tell a password manager where passkeys are added and managed (W3C, Passkey Endpoints)."""
    address = service.public_security_address(runtime())
    response = jsonify(enroll=address, manage=address)
    response.headers["Cache-Control"] = "no-store"
    return response


@docs.get("/public/frontend-config")
@anonymous_route()
@answers(FrontendConfigData(), name="getFrontendConfig")
def frontend_config() -> ResponseReturnValue:
    """Return what a frontend needs to draw its first page.

    The answer may be cached for a minute.
    """
    response = ok(service.frontend_config(runtime()))
    response.headers["Cache-Control"] = f"public, max-age={FRONTEND_CONFIG_SECONDS}"
    response.headers["Vary"] = "Authorization, Cookie"
    return response


@docs.get("/public/preview-apps")
@anonymous_route()
@answers(PreviewAppsData(), name="getPreviewApps")
def preview_apps() -> dict[str, Any]:
    """Return that no program shows files: a frontend asks at its start, whoever keeps the files."""
    return product.NO_PREVIEW_APPS


@docs.get("/public/thumbnail-support")
@anonymous_route()
@answers(ThumbnailSupportData(), name="getThumbnailSupport")
def thumbnail_support() -> dict[str, Any]:
    """Return that there are no thumbnails."""
    return product.NO_THUMBNAILS


@docs.get("/public/media-data-support")
@anonymous_route()
@answers(MediaDataSupportData(), name="getMediaDataSupport")
def media_data_support() -> dict[str, Any]:
    """Return that no media data is read."""
    return product.NO_MEDIA_DATA


@docs.get("/webdav-accounts/settings")
@login_required()
@answers(WebdavSettingsData(), name="getWebdavSettings")
def webdav_settings(**_: Any) -> dict[str, str]:
    """Return that files are not reached by WebDAV through this service."""
    return product.NO_WEBDAV


@docs.get("/openapi.json")
@anonymous_route()
@answers(OpenApiData(), media_type="application/json", name="getOpenapiDocument")
def openapi() -> ResponseReturnValue:
    """Return this description of the interface."""
    return Response(document(current_app), content_type="application/json")


@docs.get("/docs", strict_slashes=False)
@anonymous_route()
@answers(media_type="text/html", name="getReferencePage")
def reference_page() -> ResponseReturnValue:
    """Return the reference page, Swagger UI, on which every call can be tried."""
    if request.path.endswith("/"):
        # The page's links are relative, so that it works below any path prefix of a proxy.
        return redirect("../docs", 308)
    page = render_template("reference.html", swagger_ui_version=reference.SWAGGER_UI_VERSION)
    response = reference.secured(make_response(page))
    response.headers["Cache-Control"] = "no-cache"
    return response


@docs.get("/docs/assets/<path:name>")
@answers(media_type="*/*", is_conditional=True, errors=(PageFileMissing,), name="getReferenceFile")
def reference_file(name: str) -> ResponseReturnValue:
    """Return a script, style sheet or picture of the reference page."""
    return reference.own_file(name)


@docs.get("/docs/swagger-ui/<version>/<name>")
@answers(media_type="*/*", is_conditional=True, errors=(PageFileMissing,), name="getSwaggerUiFile")
def swagger_ui_file(version: str, name: str) -> ResponseReturnValue:
    """Return a file of Swagger UI, which draws the reference page."""
    return reference.swagger_ui_file(version, name)


@docs.post("/docs/qr-code")
@anonymous_route(source_check=True)
@json_body(QrCodeSchema)
@answers(media_type="image/svg+xml", errors=(Overloaded,), name="drawQrCode")
def draw_qr_code(otpauth_uri: str) -> Response:
    """Draw the link for an authenticator app as a QR code, for the page /settings/security.

    A frontend draws its own. The link is neither stored nor logged.
    """
    picture = Response(reference.draw_qr_code(otpauth_uri), content_type="image/svg+xml")
    return reference.secured(picture)
