"""gunicorn's own error responses, in the form of every other response (decisions A1, D)."""

from http import HTTPStatus
from socket import socket

from gunicorn import util

from app.core.error_codes import ErrorCode
from app.core.logs import request_fields
from app.core.tokens import random_uuid


def write_error(sock: socket, status_int: int, reason: str, mesg: str) -> None:
    """Answer a request that never reached the application; replaces gunicorn's own function."""
    del reason, mesg
    # These import the metrics, which must not be imported before their folder exists.
    from app.web.envelope import fail
    from app.web.lifecycle import SECURITY_HEADERS

    code, message = ErrorCode.BAD_REQUEST, "The request is not valid."
    status = HTTPStatus(status_int)
    if status == HTTPStatus.INTERNAL_SERVER_ERROR:
        code, message = ErrorCode.INTERNAL_SERVER_ERROR, "Internal Server Error"
    elif status > HTTPStatus.INTERNAL_SERVER_ERROR:
        # gunicorn's 501 for an unknown transfer coding: that is the client's fault, too.
        status = HTTPStatus.BAD_REQUEST
    answer = fail(code, message, status, dict(SECURITY_HEADERS))
    answer.headers["X-Request-ID"] = str(request_fields.get({}).get("request_id") or random_uuid())
    answer.headers["Cache-Control"] = "no-store"
    answer.headers["Connection"] = "close"
    head = f"HTTP/1.1 {status.value} {status.phrase}\r\n{answer.headers}"
    util.write_nonblock(sock, head.encode("latin-1") + answer.get_data())
