"""/health*, /public/frontend-config, and the API description with its reference page."""

from flask import Blueprint, Response, jsonify
from flask.typing import ResponseReturnValue

from app.operations import service
from app.operations.schemas import FrontendConfigData, ReadyData
from app.web import metrics
from app.web.anonymous import anonymous_route
from app.web.envelope import ok
from app.web.operation import answers
from app.web.runtime import runtime

bp = Blueprint("operations", __name__)
docs = Blueprint("docs", __name__, url_prefix="/api/v1")

FRONTEND_CONFIG_SECONDS = 60


@bp.get("/health")
def health() -> ResponseReturnValue:
    """Tell that the process answers; looks at nothing else."""
    return jsonify(status="ok")


@bp.get("/health/ready")
@answers(ReadyData())
def ready() -> ResponseReturnValue:
    """Tell whether database and Redis answer, and how far the installation is."""
    return ok({"status": service.readiness(runtime())})


@bp.get("/health/metrics")
def expose_metrics() -> Response:
    """Return the metrics of all workers in Prometheus' text format."""
    return metrics.exposition()


@docs.get("/public/frontend-config")
@anonymous_route()
@answers(FrontendConfigData())
def frontend_config() -> ResponseReturnValue:
    """Return what a frontend needs to draw its first page (spec 04 §8.2)."""
    response = ok(service.frontend_config(runtime()))
    response.headers["Cache-Control"] = f"public, max-age={FRONTEND_CONFIG_SECONDS}"
    response.headers["Vary"] = "Authorization, Cookie"
    return response
