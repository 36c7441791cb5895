"""What happens around every request: ids, security headers, one access log line, metrics.

WSGI middleware, because it runs for every request and costs less than Flask's hooks.
"""

import logging
import math
from collections.abc import Iterable
from time import perf_counter
from typing import TYPE_CHECKING

from flask import Flask, request

from app.core.logs import TOKEN_LIKE, WaitTimes, request_fields, wait_times, write_access_line
from app.core.runtime import Runtime
from app.crypto.tokens import random_uuid
from app.web import metrics, peer
from app.web.errors import FAILURE_CODE

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

slow_log = logging.getLogger("gatehouse.slow")

SECURITY_HEADERS = (
    ("X-Frame-Options", "SAMEORIGIN"),
    ("Referrer-Policy", "strict-origin-when-cross-origin"),
    ("X-Content-Type-Options", "nosniff"),
)
API_PREFIX = "/api/"
# No route's path begins with this.
UNROUTABLE_PREFIX = "/api/v1//"


class Lifecycle:
    """The middleware around one application's `wsgi_app`."""

    def __init__(self, wsgi_app: "WSGIApplication", rt: Runtime) -> None:
        self._wsgi_app = wsgi_app
        self._clock = rt.clock
        self._slow_seconds = rt.config.slow_request_ms / 1000 or math.inf

    def __call__(
        self, environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        """Serve one request."""
        began = perf_counter()
        path = environ["PATH_INFO"]
        if not path.startswith("/") or path.startswith("//"):
            # Flask would see a single slash, unlike everything else that looks at the path.
            environ["PATH_INFO"] = UNROUTABLE_PREFIX + path
        environ[peer.TAKEN_AT] = self._clock.now()
        request_id = random_uuid()
        request_fields.set({"request_id": request_id})
        wait_times.set(waited := WaitTimes())

        def finish(status: str, headers: list[tuple[str, str]], *exc_info: object) -> object:
            given = {name for name, _ in headers}
            # A response's own header is stricter: a link's token must not leak into a Referer.
            headers.extend(header for header in SECURITY_HEADERS if header[0] not in given)
            headers.append(("X-Request-ID", request_id))
            if environ["PATH_INFO"].startswith(API_PREFIX) and "Cache-Control" not in given:
                headers.append(("Cache-Control", "no-store"))
            number, seconds = int(status[:3]), perf_counter() - began
            _record(environ, number, seconds)
            if seconds >= self._slow_seconds:
                _log_slow(number, seconds, waited)
            return start_response(status, headers, *exc_info)  # type: ignore[arg-type]

        return self._wsgi_app(environ, finish)  # type: ignore[arg-type]


def install(app: Flask, rt: Runtime) -> None:
    """Wrap the application in the middleware."""
    app.wsgi_app = Lifecycle(app.wsgi_app, rt)  # type: ignore[method-assign]


def _record(environ: "WSGIEnvironment", status: int, seconds: float) -> None:
    """Count and log the request; runs while Flask's request context still exists."""
    rule = request.url_rule
    method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
    code = environ.get(FAILURE_CODE, "")
    metrics.count_request(method, rule, status, seconds, code)
    # If part of the path is itself a secret, the route's pattern is logged instead.
    if rule is not None and "token" in rule.arguments:
        path = rule.rule
    elif rule is None:  # a mistyped path, or one of the frontend
        path = TOKEN_LIKE.sub("...", path)
    write_access_line(method, path, status, code, seconds, peer.client_address())


def _log_slow(status: int, seconds: float, waited: WaitTimes) -> None:
    """Log a request whose response was slow to begin, under its route's pattern.

    A stream's response begins at once, so its duration does not count.
    """
    route = request.url_rule.rule if request.url_rule else "unmatched"
    fields = {
        "method": request.method,
        "route": route,
        "status": status,
        "duration_ms": round(seconds * 1000, 1),
        "database_ms": round(waited.database * 1000, 1),
        "redis_ms": round(waited.redis * 1000, 1),
    }
    message = (
        "slow: %(method)s %(route)s %(status)s %(duration_ms)s ms,"
        " %(database_ms)s ms of it for the database, %(redis_ms)s ms for Redis"
    )
    slow_log.warning(message, fields, extra=fields)
