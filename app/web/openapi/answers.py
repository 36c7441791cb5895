"""The `responses` of an operation: success, and errors by status; shared ones are components."""

from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import Any

from apispec import APISpec

from app.core.access import (
    AccountDisabled,
    PasswordChangeRequired,
    TokenExpired,
    TokenInvalid,
    TokenMissing,
)
from app.core.error_codes import ErrorCode
from app.core.errors import (
    AppError,
    BadRequest,
    DatabaseUnavailable,
    RateLimited,
    RedisUnavailable,
    ServerFault,
    TooLarge,
)
from app.web import origin
from app.web.errors import EndpointNotFound, MethodNotAllowed, status_of
from app.web.openapi.examples import ITEM_SCHEMA, JsonSchema
from app.web.openapi.schemas import Plugin, payload_name
from app.web.openapi.texts import headline
from app.web.operation import Operation

Answer = dict[str, Any]
Errors = Sequence[type[AppError]]

JSON = "application/json"
ERROR_ANSWER = "ErrorAnswer"
# Always null. All generators can make a type of this, but not all of them of {"type": "null"}.
NULL: JsonSchema = {"type": ["object", "null"], "const": None}
OUTAGES = (DatabaseUnavailable, RedisUnavailable)
HEADERS: dict[str, JsonSchema] = {
    "X-Request-ID": {
        "description": "Identifies this request; the service's log lines carry it, too.",
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
        "description": "Identifies this version; returned as If-None-Match it saves the transfer.",
        "schema": {"type": "string"},
    },
    "Location": {
        "description": "Where to go next; only a path while the site's address is not configured.",
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


def _with_status(status: HTTPStatus, errors: Errors) -> Errors:
    return tuple(error for error in errors if status_of(error) == status)


MALFORMED_SOURCE = _with_status(HTTPStatus.BAD_REQUEST, origin.SOURCE_ERRORS)
FOREIGN_SOURCE = _with_status(HTTPStatus.FORBIDDEN, origin.SOURCE_ERRORS)
RESTRICTED = (AccountDisabled, PasswordChangeRequired)
# Errors that occur together in many operations, by the name of their component.
SHARED: dict[str, tuple[HTTPStatus, Errors]] = {
    "EndpointNotFound": (HTTPStatus.NOT_FOUND, (EndpointNotFound,)),
    "MethodNotAllowed": (HTTPStatus.METHOD_NOT_ALLOWED, (MethodNotAllowed,)),
    "BodyTooLarge": (HTTPStatus.REQUEST_ENTITY_TOO_LARGE, (TooLarge,)),
    "RateLimited": (HTTPStatus.TOO_MANY_REQUESTS, (RateLimited,)),
    "Unexpected": (HTTPStatus.INTERNAL_SERVER_ERROR, (Unexpected,)),
    "Unavailable": (HTTPStatus.SERVICE_UNAVAILABLE, OUTAGES),
    "SessionMissing": (HTTPStatus.UNAUTHORIZED, (TokenMissing, TokenExpired, TokenInvalid)),
    "SessionRestricted": (HTTPStatus.FORBIDDEN, RESTRICTED),
    "SessionRestrictedOrSourceRefused": (
        HTTPStatus.FORBIDDEN,
        (*RESTRICTED, *FOREIGN_SOURCE, *origin.CSRF_ERRORS),
    ),
    "SourceMalformed": (HTTPStatus.BAD_REQUEST, MALFORMED_SOURCE),
    "BodyOrSourceMalformed": (HTTPStatus.BAD_REQUEST, (BadRequest, *MALFORMED_SOURCE)),
}


class Answers:
    """Builds the `responses` of operations; those that several share become components."""

    def __init__(self, spec: APISpec, plugin: Plugin) -> None:
        self._components = spec.components
        self._plugin = plugin
        self._codes: set[str] = set()
        self._conditions: set[type[AppError]] = set()
        self._envelopes: dict[str, JsonSchema] = {}
        for name, header in HEADERS.items():
            self._components.header(name, header)
        for name, (status, errors) in SHARED.items():
            self._components.response(name, self._refusal(name, status, errors))

    def of(self, name: str, operation: Operation, refusals: Iterable[type[AppError]]) -> Answer:
        """Return all responses, by status, of the operation that clients know as `name`."""
        by_status: dict[HTTPStatus, list[type[AppError]]] = {
            HTTPStatus.INTERNAL_SERVER_ERROR: [Unexpected]
        }
        for error in refusals:
            by_status.setdefault(status_of(error), []).append(error)
        if operation.access and (operation.is_enveloped or operation.is_redirect):
            by_status.setdefault(HTTPStatus.SERVICE_UNAVAILABLE, []).extend(OUTAGES)
        described: Answer = {str(operation.status): self._success(operation)}
        if operation.may_be_empty:
            described["204"] = _answer(
                "There is nothing to send now; do not ask again automatically."
            )
        if operation.is_conditional:
            described["304"] = _answer(
                "The version named by If-None-Match is still current.", ["ETag"]
            )
        for status, errors in sorted(by_status.items()):
            described[str(status.value)] = self._shared(status, errors, name)
        return described

    def add_error_envelope(self) -> None:
        """Add the schemas of the error envelope and of all codes; call it after the last `of`."""
        codes = {
            "type": "string",
            "description": "Every code with which an operation is refused. More may be added later",
            "enum": sorted(self._codes),
        }
        self._components.schema("ErrorCode", codes)
        # `code` has no enum: tools that merge the parts of an `allOf` would add each error's to it.
        error = _envelope({"type": "string", "description": "one of `ErrorCode`"}, NULL)
        described = {**error, "description": "Any refusal; each operation lists its own codes"}
        self._components.schema(ERROR_ANSWER, described)

    def _success(self, operation: Operation) -> Answer:
        description = HTTPStatus(operation.status).phrase
        if operation.is_redirect:
            return _answer(description, ["Location"])
        if operation.is_enveloped:
            return _answer(description, schema=self._envelope_of(operation))
        if operation.event is not None:
            event = self._plugin.reference(operation.event)
            content = {"schema": _events(event), ITEM_SCHEMA: event}
            return _answer(description, media_type=operation.media_type, **content)
        headers = ["ETag"] if operation.is_conditional else []
        is_text = operation.media_type.startswith("text/")
        schema: JsonSchema = {"type": "string"} if is_text else {}
        for payload in operation.payloads:
            schema = self._plugin.reference(payload)
        return _answer(description, headers, media_type=operation.media_type, schema=schema)

    def _envelope_of(self, operation: Operation) -> JsonSchema:
        """Return a reference to the envelope around an operation's payload."""
        payloads = operation.payloads
        shapes = [self._plugin.reference(payload) for payload in payloads]
        name = "Or".join(map(payload_name, payloads)) or "Done"
        data = {"oneOf": shapes} if len(shapes) > 1 else next(iter(shapes), NULL)
        envelope = _envelope({"type": "string", "const": ErrorCode.SUCCESS.value}, data)
        if name not in self._envelopes:
            self._envelopes[name] = envelope
            self._components.schema(f"{name}Answer", envelope)
        elif self._envelopes[name] != envelope:
            raise ValueError(f"two payloads are called {name}")
        return {"$ref": f"#/components/schemas/{name}Answer"}

    def _shared(self, status: HTTPStatus, errors: Errors, operation: str) -> Answer:
        """Return the response for `errors`; if it is shared or of one error, as a component."""
        for name, (its_status, its_errors) in SHARED.items():
            if status == its_status and set(errors) == set(its_errors):
                return {"$ref": f"#/components/responses/{name}"}
        if len(errors) > 1:
            return self._refusal(
                f"{operation[0].upper()}{operation[1:]}{status.value}", status, errors
            )
        name = errors[0].__name__
        if name not in self._components.responses:
            self._components.response(name, self._refusal(name, status, errors))
        return {"$ref": f"#/components/responses/{name}"}

    def _refusal(self, name: str, status: HTTPStatus, errors: Errors) -> Answer:
        """Return the response of one status: its codes, and an example of each error."""
        codes = sorted({error.code.value for error in errors})
        self._codes.update(codes)
        narrowed = {"properties": {"code": {"type": "string", "enum": codes}}}
        # Without a title some generators call the type InlineObject7.
        schema = {
            "title": f"{name}Answer",
            "allOf": [{"$ref": f"#/components/schemas/{ERROR_ANSWER}"}, narrowed],
        }
        return _answer(
            headline(errors[0]) if len(errors) == 1 else f"{status.phrase}: `code` tells why.",
            HEADERS_BY_STATUS.get(status, []),
            schema=schema,
            examples={error.__name__: self._example(error) for error in errors},
        )

    def _example(self, error: type[AppError]) -> Answer:
        if error not in self._conditions:
            self._conditions.add(error)
            # Fails if another error has the same name.
            self._components.example(error.__name__, _example(error))
        return {"$ref": f"#/components/examples/{error.__name__}"}


def _envelope(code: JsonSchema, data: JsonSchema) -> JsonSchema:
    """Return the four-key object around every JSON response (decision A1)."""
    members = {"code": code, "msg": {"type": "string"}, "data": data, "error": NULL}
    return {"type": "object", "required": list(members), "properties": members}


def _events(event: JsonSchema) -> JsonSchema:
    name = event["$ref"].rpartition("/")[2]
    text = (
        f"Server-sent events without name or id: each `data:` line is one `{name}` as JSON; a line "
        "that begins with a colon is a comment."
    )
    return {"type": "string", "description": text}


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


def _example(error: type[AppError]) -> Answer:
    value = {"code": error.code.value, "msg": error.example(), "data": None, "error": None}
    return {"summary": f"{error.code.value}: {headline(error)}", "value": value}
