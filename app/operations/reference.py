"""The files of the API reference page, and their Content Security Policy.

Invariant: the page runs no script except files served by this service, and connects to no other
host.
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
        "img-src 'self' data: blob:",  # a response that is an image is displayed
        "connect-src 'self'",
        "frame-ancestors 'self'",
        "base-uri 'none'",
        "form-action 'self'",
    )
)


def secured(response: Response) -> Response:
    """Add the policy that keeps foreign scripts out of the page."""
    response.headers["Content-Security-Policy"] = CONTENT_SECURITY_POLICY
    return response


def own_file(name: str) -> Response:
    """Return a file of this service; the browser revalidates it each time.

    Raises: PageFileMissing.
    """
    return _file(STATIC, name)


def swagger_ui_file(version: str, name: str) -> Response:
    """Return a file of Swagger UI; cacheable for a year, since its URL contains its version.

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
        # A conditional header with a year or a UTC offset out of range.
        raise BadRequest from None
