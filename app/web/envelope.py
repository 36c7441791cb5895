"""The four-key envelope around every JSON response."""

import json
from collections.abc import Mapping
from typing import Any

from flask import Response

from app.core.error_codes import ErrorCode

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def ok(data: Any = None, status: int = 200) -> Response:
    """Return a success response; `data` is None if an operation has no payload."""
    return _answer(ErrorCode.SUCCESS, "", data, status)


def fail(
    code: ErrorCode, message: str, status: int, headers: Mapping[str, str] | None = None
) -> Response:
    """Return an error response."""
    response = _answer(code, message, None, status)
    response.headers.update(headers or {})
    return response


def _answer(code: ErrorCode, message: str, data: Any, status: int) -> Response:
    body = _encode({"code": code.value, "msg": message, "data": data, "error": None})
    # A lone surrogate in a message must not turn a refusal into an internal error.
    return Response(body.encode("utf-8", "replace"), status, content_type="application/json")
