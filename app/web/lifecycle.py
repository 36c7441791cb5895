"""What happens around every request: ids, security headers, one access line, metrics."""

from time import perf_counter

from flask import Flask, Response, g, request

from app.core.logs import AccessLog, request_fields
from app.core.tokens import random_uuid
from app.web import metrics, peer
from app.web.runtime import runtime

access_log = AccessLog()

SECURITY_HEADERS = (
    ("X-Frame-Options", "SAMEORIGIN"),
    ("Referrer-Policy", "strict-origin-when-cross-origin"),
    ("X-Content-Type-Options", "nosniff"),
)
API_PREFIX = "/api/v1/"


def install(app: Flask) -> None:
    """Wrap every request of the application."""
    app.before_request(_begin)
    app.after_request(_finish)


def _begin() -> None:
    g.taken_at = runtime().clock.now()
    g.began = perf_counter()
    g.request_id = random_uuid()
    request_fields.set({"request_id": g.request_id})


def _finish(response: Response) -> Response:
    headers = response.headers
    headers.extend(SECURITY_HEADERS)
    headers["X-Request-ID"] = g.request_id
    if "Cache-Control" not in headers and request.path.startswith(API_PREFIX):
        headers["Cache-Control"] = "no-store"
    seconds = perf_counter() - g.began
    metrics.count_request(response.status_code, seconds, g.get("failure_code", ""))
    access_log.write(
        request.method, _loggable_path(), response.status_code, seconds, peer.client_address()
    )
    return response


def _loggable_path() -> str:
    """Return the path, or the route's pattern where a part of the path is itself a secret."""
    rule = request.url_rule
    if rule is not None and "token" in rule.arguments:
        return rule.rule
    return request.path
