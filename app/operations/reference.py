"""The files of the API reference page, their Content Security Policy, and QR codes for the pages.

Invariants: the page runs no script except files served by this service, and connects to no other
host. The otpauth:// link drawn as a QR code contains a secret, so it is neither stored nor logged,
and no part of it appears as text in the drawing.
"""

import io
from importlib import metadata, resources
from pathlib import Path

import segno
from flask import Response, send_from_directory
from werkzeug.exceptions import NotFound as NoSuchFile

from app.core.errors import BadRequest
from app.core.thread_pool import ThreadPool
from app.web.errors import EndpointNotFound

STATIC = Path(__file__).parent / "static"
SWAGGER_UI_VERSION = metadata.version("flask-swagger-ui")
SWAGGER_UI_FILES = frozenset({"swagger-ui.css", "swagger-ui-bundle.js"})
YEAR_SECONDS = 365 * 24 * 60 * 60

# A code takes 10 ms, one of the longest links 40 ms: too long for the event loop. The thread is not
# nice, because Python code holds the GIL: preempted while holding it, it would keep the event loop
# waiting (priority inversion).
_drawing = ThreadPool(1, max_queued=16)

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


class PageFileMissing(EndpointNotFound):
    """The reference page has no such file."""


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


def draw_qr_code(otpauth_uri: str) -> bytes:
    """Return the QR code as SVG, with the quiet zone that scanners need (ISO/IEC 18004, 5.3.8).

    Black on white even on a dark page: many scanners cannot read inverted codes.
    Raises: Overloaded.
    """
    return _drawing.run(_qr_code_svg, otpauth_uri)


def _qr_code_svg(text: str) -> bytes:
    # Low error correction: a screen is neither torn nor dirty, and the modules become larger.
    code = segno.make_qr(text, error="l")
    file = io.BytesIO()
    code.save(file, kind="svg", scale=4, unit="px", light="#fff", svgclass=None, lineclass=None)
    return file.getvalue()
