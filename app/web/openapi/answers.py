"""The `responses` of an operation: success, refusals by status, and what every route shares."""

from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import Any

from app.core.error_codes import ErrorCode
from app.core.errors import (
    AppError,
    DatabaseUnavailable,
    RateLimited,
    RedisUnavailable,
    ServerFault,
    TooLarge,
)
from app.web.errors import EndpointNotFound, MethodNotAllowed, status_of
from app.web.openapi.examples import JsonSchema
from app.web.openapi.texts import headline
from app.web.operation import Operation

Answer = dict[str, Any]
Errors = Sequence[type[AppError]]

JSON = "application/json"
OUTAGES = (DatabaseUnavailable, RedisUnavailable)
HEADERS: dict[str, JsonSchema] = {
    "X-Request-ID": {
        "description": "Names this request; the service's log lines carry it too.",
        "schema": {"type": "string", "format": "uuid"},
    },
    "Retry-After": {
        "description": "When to try again, in seconds.",
        "schema": {"type": "integer", "minimum": 0},
    },
    "WWW-Authenticate": {
        "description": "How to authenticate (RFC 9110 §15.5.2).",
        "schema": {"type": "string"},
    },
    "ETag": {
        "description": "Names this version; sent back as If-None-Match it saves the transfer.",
        "schema": {"type": "string"},
    },
    "Location": {
        "description": "Where to go on; only a path while the site's address is not configured.",
        "schema": {"type": "string", "format": "uri-reference"},
    },
}
HEADERS_BY_STATUS = {
    HTTPStatus.UNAUTHORIZED: ["WWW-Authenticate"],
    HTTPStatus.TOO_MANY_REQUESTS: ["Retry-After"],
    HTTPStatus.SERVICE_UNAVAILABLE: ["Retry-After"],
}


class Unexpected(ServerFault):
    """A fault of the service; the request id leads to it in the log."""


# What reads alike wherever it occurs, by the name of its component.
SHARED: dict[str, tuple[HTTPStatus, Errors]] = {
    "EndpointNotFound": (HTTPStatus.NOT_FOUND, (EndpointNotFound,)),
    "MethodNotAllowed": (HTTPStatus.METHOD_NOT_ALLOWED, (MethodNotAllowed,)),
    "BodyTooLarge": (HTTPStatus.REQUEST_ENTITY_TOO_LARGE, (TooLarge,)),
    "RateLimited": (HTTPStatus.TOO_MANY_REQUESTS, (RateLimited,)),
    "Unexpected": (HTTPStatus.INTERNAL_SERVER_ERROR, (Unexpected,)),
    "Unavailable": (HTTPStatus.SERVICE_UNAVAILABLE, OUTAGES),
}


def responses(operation: Operation, refusals: Iterable[type[AppError]], data: Any) -> Answer:
    """Return every answer of an operation by status; `data` is the payload's schema or None."""
    by_status: dict[HTTPStatus, list[type[AppError]]] = {
        HTTPStatus.INTERNAL_SERVER_ERROR: [Unexpected]
    }
    for error in refusals:
        by_status.setdefault(status_of(error), []).append(error)
    if operation.access and (operation.is_enveloped or operation.is_redirect):
        by_status.setdefault(HTTPStatus.SERVICE_UNAVAILABLE, []).extend(OUTAGES)
    described: Answer = {str(operation.status): _success(operation, data)}
    if operation.may_be_empty:
        described["204"] = _answer("There is nothing to answer now; do not ask again by yourself.")
    if operation.is_conditional:
        described["304"] = _answer("The version named by If-None-Match is still current.", ["ETag"])
    for status, errors in sorted(by_status.items()):
        described[str(status.value)] = _shared(status, errors) or refusal(status, errors)
    return described


def refusal(status: HTTPStatus, errors: Errors) -> Answer:
    """Return the answer of one status: the codes it can carry and an example of each condition."""
    headers = HEADERS_BY_STATUS.get(status, [])
    return _answer(
        headline(errors[0]) if len(errors) == 1 else f"{status.phrase}: `code` tells why.",
        headers,
        schema=envelope({"enum": sorted({error.code.value for error in errors})}, None),
        examples={error.__name__: _example(error) for error in errors},
    )


def envelope(code: JsonSchema, data: JsonSchema | None) -> JsonSchema:
    """Return the four-key object around every JSON answer (decision A1)."""
    members = {
        "code": {"type": "string", **code},
        "msg": {"type": "string", "examples": [""]},
        "data": data or {"type": "null"},
        "error": {"type": "null"},
    }
    return {"type": "object", "required": list(members), "properties": members}


def _success(operation: Operation, data: JsonSchema | None) -> Answer:
    description = HTTPStatus(operation.status).phrase
    if operation.is_redirect:
        return _answer(description, ["Location"])
    if operation.is_enveloped:
        return _answer(description, schema=envelope({"const": ErrorCode.SUCCESS.value}, data))
    headers = ["ETag"] if operation.is_conditional else []
    schema = data or ({"type": "string"} if operation.media_type.startswith("text/") else {})
    return _answer(description, headers, media_type=operation.media_type, schema=schema)


def _answer(
    description: str, headers: Iterable[str] = (), media_type: str = JSON, **content: Any
) -> Answer:
    names = ["X-Request-ID", *headers]
    answer: Answer = {
        "description": description,
        "headers": {name: {"$ref": f"#/components/headers/{name}"} for name in names},
    }
    if content:
        answer["content"] = {media_type: content}
    return answer


def _shared(status: HTTPStatus, errors: Errors) -> Answer | None:
    for name, (its_status, its_errors) in SHARED.items():
        if status == its_status and set(errors) == set(its_errors):
            return {"$ref": f"#/components/responses/{name}"}
    return None


def _example(error: type[AppError]) -> Answer:
    value = {"code": error.code.value, "msg": error.example(), "data": None, "error": None}
    return {"summary": f"{error.code.value}: {headline(error)}", "value": value}
