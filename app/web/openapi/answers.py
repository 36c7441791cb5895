"""The `responses` of an operation: success, and errors by status, which are components."""

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
from app.core.errors import (
    AppError,
    BadRequest,
    DatabaseUnavailable,
    ErrorCode,
    RedisUnavailable,
    ServerFault,
    TooLarge,
)
from app.web import origin
from app.web.errors import EndpointNotFound, MethodNotAllowed, status_of
from app.web.openapi.schemas import ITEM_SCHEMA, JsonSchema, Plugin, headline, payload_name
from app.web.operation import Operation

Errors = Sequence[type[AppError]]

JSON = "application/json"
# Always null. All generators can make a type of this, but not all of them of {"type": "null"}.
NULL: JsonSchema = {"type": ["object", "null"], "const": None}
OUTAGES = (DatabaseUnavailable, RedisUnavailable)
HEADERS_BY_STATUS = {401: ["WWW-Authenticate"], 429: ["Retry-After"], 503: ["Retry-After"]}


class Unexpected(ServerFault):
    """A fault of the service; the request id leads to it in the log."""


RESTRICTED = (AccountDisabled, PasswordChangeRequired)
MALFORMED_SOURCE = [error for error in origin.SOURCE_ERRORS if issubclass(error, BadRequest)]
FOREIGN_SOURCE = [error for error in origin.SOURCE_ERRORS if not issubclass(error, BadRequest)]
# Errors that occur together in many operations, with the name of their component.
SHARED = {
    frozenset(OUTAGES): "Unavailable",
    frozenset([TooLarge]): "BodyTooLarge",
    frozenset([TokenMissing, TokenExpired, TokenInvalid]): "SessionMissing",
    frozenset(RESTRICTED): "SessionRestricted",
    frozenset([*RESTRICTED, *FOREIGN_SOURCE, *origin.CSRF_ERRORS]): (
        "SessionRestrictedOrSourceRefused"
    ),
    frozenset(MALFORMED_SOURCE): "SourceMalformed",
    frozenset([BadRequest, *MALFORMED_SOURCE]): "BodyOrSourceMalformed",
}


class Answers:
    """Builds the `responses` of operations."""

    def __init__(self, spec: APISpec, plugin: Plugin) -> None:
        self._components = spec.components
        self._plugin = plugin
        self._codes: set[str] = set()
        for error in (EndpointNotFound, MethodNotAllowed):
            self._refusal([error], "")

    def of(self, name: str, operation: Operation, refusals: Iterable[type[AppError]]) -> JsonSchema:
        """Return all responses, by status, of the operation that clients know as `name`."""
        by_status: dict[int, list[type[AppError]]] = {500: [Unexpected]}
        for error in refusals:
            by_status.setdefault(status_of(error), []).append(error)
        if operation.access and (operation.is_enveloped or operation.is_redirect):
            by_status.setdefault(503, []).extend(OUTAGES)
        described: JsonSchema = {str(operation.status): self._success(operation)}
        if operation.may_be_empty:
            text = "There is nothing to send now; do not ask again automatically."
            described["204"] = _answer(text)
        if operation.is_conditional:
            text = "The version named by If-None-Match is still current."
            described["304"] = _answer(text, ["ETag"])
        for status, errors in sorted(by_status.items()):
            described[f"{status:d}"] = self._refusal(errors, name)
        return described

    def add_error_envelope(self) -> None:
        """Add the schemas of the error envelope and of all codes; call it after the last `of`."""
        text = "Every code with which an operation is refused. More may be added later"
        codes = {"type": "string", "description": text, "enum": sorted(self._codes)}
        self._components.schema("ErrorCode", codes)
        # `code` has no enum: tools that merge the parts of an `allOf` would add each error's to it.
        error = _envelope({"type": "string", "description": "one of `ErrorCode`"}, NULL)
        error["description"] = "Any refusal; each operation lists its own codes"
        self._components.schema("ErrorAnswer", error)

    def _success(self, operation: Operation) -> JsonSchema:
        description = HTTPStatus(operation.status).phrase
        if operation.is_redirect:
            return _answer(description, ["Location"])
        if operation.media_type is None:
            return _answer(description, content={JSON: {"schema": self._envelope_of(operation)}})
        media: JsonSchema = {"schema": {}}
        if operation.media_type.startswith("text/"):
            media["schema"] = {"type": "string"}
        for payload in operation.payloads:
            media["schema"] = self._plugin.reference(payload)
        if operation.event is not None:
            media[ITEM_SCHEMA] = event = self._plugin.reference(operation.event)
            media["schema"]["description"] = (
                "Server-sent events without name or id: each `data:` line is one "
                f"`{event['$ref'].rpartition('/')[2]}` as JSON; a line that begins with a colon "
                "is a comment."
            )
        headers = ["ETag"] if operation.is_conditional else []
        return _answer(description, headers, content={operation.media_type: media})

    def _envelope_of(self, operation: Operation) -> JsonSchema:
        """Return a reference to the envelope around an operation's payload."""
        shapes = [self._plugin.reference(payload) for payload in operation.payloads]
        data = {"oneOf": shapes} if len(shapes) > 1 else next(iter(shapes), NULL)
        envelope = _envelope({"type": "string", "const": ErrorCode.SUCCESS.value}, data)
        name = f"{'Or'.join(map(payload_name, operation.payloads)) or 'Done'}Answer"
        if self._components.schemas.setdefault(name, envelope) != envelope:
            raise ValueError(f"two payloads are called {name}")
        return {"$ref": f"#/components/schemas/{name}"}

    def _refusal(self, errors: Errors, operation: str) -> JsonSchema:
        """Return the component for these errors of one status: its codes, an example of each."""
        status = status_of(errors[0])
        own_name = errors[0].__name__
        if len(errors) > 1:
            own_name = f"{operation[:1].upper()}{operation[1:]}{status.value}"
        name = SHARED.get(frozenset(errors), own_name)
        if name not in self._components.responses:
            self._components.response(name, self._describe(name, status, errors))
        return {"$ref": f"#/components/responses/{name}"}

    def _describe(self, name: str, status: HTTPStatus, errors: Errors) -> JsonSchema:
        codes = sorted({error.code.value for error in errors})
        self._codes.update(codes)
        for error in errors:
            self._components.examples.setdefault(error.__name__, _example(error))
        # Without a title some generators call the type InlineObject7.
        schema = {
            "title": f"{name}Answer",
            "allOf": [
                {"$ref": "#/components/schemas/ErrorAnswer"},
                {"properties": {"code": {"type": "string", "enum": codes}}},
            ],
        }
        examples = {e.__name__: {"$ref": f"#/components/examples/{e.__name__}"} for e in errors}
        text = headline(errors[0]) if len(errors) == 1 else f"{status.phrase}: `code` tells why."
        content = {JSON: {"schema": schema, "examples": examples}}
        return _answer(text, HEADERS_BY_STATUS.get(status, []), content=content)


def _envelope(code: JsonSchema, data: JsonSchema) -> JsonSchema:
    """Return the four-key object around every JSON response."""
    members = {"code": code, "msg": {"type": "string"}, "data": data, "error": NULL}
    return {"type": "object", "required": list(members), "properties": members}


def _answer(description: str, headers: Iterable[str] = (), **content: Any) -> JsonSchema:
    names = ["X-Request-ID", *headers]
    refs = {name: {"$ref": f"#/components/headers/{name}"} for name in names}
    return {"description": description, "headers": refs, **content}


def _example(error: type[AppError]) -> JsonSchema:
    value = {"code": error.code.value, "msg": error.example(), "data": None, "error": None}
    return {"summary": f"{error.code.value}: {headline(error)}", "value": value}
