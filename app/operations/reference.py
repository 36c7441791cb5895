"""The files of the API reference page, and what a browser may do with them.

Invariant: the page runs no script that this service did not serve as a file of its own, and speaks
to no other host.
"""

from importlib import metadata, resources
from pathlib import Path

from flask import Response, send_from_directory
from werkzeug.exceptions import NotFound as NoSuchFile

from app.core.errors import BadRequest
from app.operations.errors import PageFileMissing

STATIC = Path(__file__).parent / "static"
SWAGGER_UI_VERSION = metadata.version("flask-swagger-ui")
SWAGGER_UI_FILES = frozenset({"swagger-ui.css", "swagger-ui-bundle.js"})
YEAR_SECONDS = 365 * 24 * 60 * 60

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",  # an answer that is a picture is shown as one
        "connect-src 'self'",
        "frame-ancestors 'self'",
        "base-uri 'none'",
        "form-action 'self'",
    )
)


def secured(response: Response) -> Response:
    """Add the policy that keeps foreign script out of the page."""
    response.headers["Content-Security-Policy"] = CONTENT_SECURITY_POLICY
    return response


def own_file(name: str) -> Response:
    """Return a file of ours; the browser asks each time whether it changed.

    Raises: PageFileMissing.
    """
    return _file(STATIC, name)


def swagger_ui_file(version: str, name: str) -> Response:
    """Return a file of Swagger UI; its version is in its address, so it is kept for a year.

    Raises: PageFileMissing.
    """
    if version != SWAGGER_UI_VERSION or name not in SWAGGER_UI_FILES:
        raise PageFileMissing
    folder = Path(str(resources.files("flask_swagger_ui"))) / "dist"
    response = _file(folder, name, YEAR_SECONDS)
    response.cache_control.immutable = True
    return response


def _file(folder: Path, name: str, seconds: int | None = None) -> Response:
    try:
        return secured(send_from_directory(folder, name, max_age=seconds))
    except NoSuchFile:
        raise PageFileMissing from None
    except OverflowError:
        # A conditional header with a year or an offset that no date has.
        raise BadRequest from None
