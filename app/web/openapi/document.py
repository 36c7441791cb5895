"""Assembles the document: routes, how a caller authenticates, and what they are answered."""

import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from http import HTTPStatus
from pathlib import Path
from types import ModuleType
from typing import Any

from apispec import APISpec
from flask import Flask
from werkzeug.routing import Rule

from app import __version__
from app.core.access import (
    AccountDisabled,
    ClosedToTokens,
    PasswordChangeRequired,
    PendingActivation,
    Scope,
    ScopeMissing,
    SessionUserMismatch,
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
from app.web import guards, origin
from app.web.errors import EndpointNotFound, MethodNotAllowed, status_of
from app.web.openapi.schemas import (
    JsonSchema,
    Plugin,
    examples,
    headline,
    paragraphs,
    payload_name,
    stream_example,
)
from app.web.operation import ADMINISTRATION, Operation, operation_of

# Its texts stand beside it: the introduction, and headers and ways to authenticate.
HERE = Path(__file__).parent
ACCOUNT_PREFIX = "/api/v1/auth/"
ADMINISTRATION_TEXT = "Administration over HTTP, a blueprint for each part; /api/v1/admin"
MAX_ABBREVIATION_LENGTH = 3  # MFA
CACHE = "gatehouse_openapi"
JSON = "application/json"
VARIABLE = re.compile(r"<(?:(?P<kind>\w+)(?:\([^)]*\))?:)?(?P<name>\w+)>")
KINDS: dict[str | None, JsonSchema] = {
    "int": {"type": "integer", "minimum": 0},
    "picture_size": {"type": "integer", "enum": [512, 1024]},
    "path": {"type": "string", "minLength": 1, "description": "may contain slashes"},
    "row": {"type": "integer", "format": "int64", "minimum": 1},
    "uuid": {"type": "string", "format": "uuid"},
}
# With an empty schema, the types of an answer that is this or JSON would be of no use: anything.
BYTES = {"type": "string", "format": "binary"}
# RFC 7578. Older tools recognise a file input by its `format`, newer ones by its media type.
FILE = {**BYTES, "contentMediaType": "application/octet-stream"}
FILE_FORM = {"type": "object", "required": ["file"], "properties": {"file": FILE}}
# What OpenAPI 3.2 calls `itemSchema`; 3.1 has no name for one event of a stream.
ITEM_SCHEMA = "x-itemSchema"
# Always null. All generators can make a type of this, but not all of them of {"type": "null"}.
NULL: JsonSchema = {"type": ["object", "null"], "const": None}
# It has no enum: tools that merge the parts of an `allOf` would add each error's to it.
ONE_CODE: JsonSchema = {"type": "string", "description": "one of `ErrorCode`"}
# A component of base.json.
USER_HEADER = guards.USER_HEADER
HEADERS_BY_STATUS = {401: ["WWW-Authenticate"], 429: ["Retry-After"], 503: ["Retry-After"]}


class Unexpected(ServerFault):
    """A fault of the service; the request id finds it in the log."""


OUTAGES = (DatabaseUnavailable, RedisUnavailable)
# `ClosedToTokens` on every route for sessions, `ScopeMissing` where a scope opens it to tokens.
RESTRICTED = (AccountDisabled, PendingActivation, PasswordChangeRequired, ClosedToTokens)
MALFORMED_SOURCE = [error for error in origin.SOURCE_ERRORS if issubclass(error, BadRequest)]
FOREIGN_SOURCE = [error for error in origin.SOURCE_ERRORS if not issubclass(error, BadRequest)]
# Errors that occur together in many operations, with the name of their component.
SHARED = {
    frozenset(OUTAGES): "Unavailable",
    frozenset([TooLarge]): "BodyTooLarge",
    frozenset([TokenMissing, TokenExpired, TokenInvalid]): "SessionMissing",
    frozenset(RESTRICTED): "SessionRestricted",
    frozenset([*RESTRICTED, ScopeMissing]): "SessionOrTokenRestricted",
    frozenset([*RESTRICTED, SessionUserMismatch, *FOREIGN_SOURCE, *origin.CSRF_ERRORS]): (
        "SessionRestrictedOrSourceRefused"
    ),
    frozenset(MALFORMED_SOURCE): "SourceMalformed",
    frozenset([BadRequest, *MALFORMED_SOURCE]): "BodyOrSourceMalformed",
}


def document(app: Flask) -> str:
    """Return the description of an application as JSON text, built at the first call."""
    if CACHE not in app.extensions:
        described = Description(app).to_dict()
        app.extensions[CACHE] = json.dumps(described, ensure_ascii=False, separators=(",", ":"))
    text: str = app.extensions[CACHE]
    return text


class Description(APISpec):
    """The description of an application's routes, from which apispec makes the document.

    It resolves what is named here by a schema or by a text: that of a component.
    """

    def __init__(self, app: Flask) -> None:
        self._plugin = Plugin()
        super().__init__(
            title="Gatehouse",
            version=__version__,
            openapi_version="3.1.0",
            plugins=[self._plugin],
            info={"description": (HERE / "introduction.md").read_text("utf-8")},
            **json.loads((HERE / "base.json").read_text("utf-8")),
        )
        # What applications call, then health, metrics and this document; the pages take any method.
        rules = (rule for rule in app.url_map.iter_rules() if rule.methods is not None)
        tags: dict[str, str] = {}
        for rule in sorted(rules, key=lambda rule: not rule.rule.startswith(ACCOUNT_PREFIX)):
            view = app.view_functions[rule.endpoint]
            area = sys.modules[view.__module__.rpartition(".")[0].removesuffix(".views")]
            tag = _tag(area)
            tags[tag] = ADMINISTRATION_TEXT if tag == ADMINISTRATION else headline(area)
            operations = {
                method.lower(): {**self._operation(rule, method, view), "tags": [tag]}
                for method in sorted((rule.methods or set()) - {"HEAD", "OPTIONS"})
            }
            self.path(path=VARIABLE.sub(r"{\g<name>}", rule.rule), operations=operations)
        for tag, description in tags.items():
            self.tag({"name": tag, "description": description})
        self._add_errors()

    def _operation(self, rule: Rule, method: str, view: Any) -> JsonSchema:
        operation = operation_of(view)
        first, *others = view.__name__.split("_")
        name = operation.name or first + "".join(word.capitalize() for word in others)
        details = [*paragraphs(view)[1:], _access_sentence(operation)]
        described: JsonSchema = {
            "operationId": name,
            "summary": headline(view),
            "description": "\n\n".join(filter(None, details)),
            "security": _requirements(operation, method),
            "parameters": [*_parameters(operation, rule, method)],
            "responses": self._responses(name, operation, method),
        }
        if operation.is_deprecated:
            described["deprecated"] = True
        if operation.body is not None:
            content = {JSON: self._json(self._plugin.reference(operation.body()))}
            described["requestBody"] = {"required": True, "content": content}
        if operation.has_file:
            content = {"multipart/form-data": {"schema": FILE_FORM}}
            described["requestBody"] = {"required": True, "content": content}
        return described

    def _responses(self, name: str, operation: Operation, method: str) -> dict[int, Any]:
        """Return all responses, by status, of the operation that clients know as `name`."""
        by_status: dict[int, list[type[AppError]]] = {500: [Unexpected]}
        for error in _refusals(operation, method):
            by_status.setdefault(status_of(error), []).append(error)
        described: dict[int, Any] = {operation.status: self._success(operation)}
        if operation.may_be_empty:
            text = "There is nothing to send now; do not ask again automatically."
            described[204] = _answer(text)
        if operation.may_be_page:
            content = {"text/html": {"schema": {"type": "string"}}}
            described[200] = _answer("A page that asks the person.", [], content)
        if operation.is_conditional:
            text = "The version named by If-None-Match is still current."
            described[304] = _answer(text, ["ETag"])
        for status, errors in sorted(by_status.items()):
            described[status] = self._refusal(errors, name)
        return described

    def _success(self, operation: Operation) -> JsonSchema:
        description = HTTPStatus(operation.status).phrase
        if operation.is_redirect:
            return _answer(description, ["Location"])
        chosen = operation.media_type or JSON
        kinds = (chosen,) if isinstance(chosen, str) else chosen
        if operation.is_enveloped:
            media = self._json(self._envelope_of(operation))
        elif operation.payloads:
            media = self._json(self._plugin.reference(operation.payloads[0]))
        else:
            media = {"schema": {"type": "string"} if kinds[0].startswith("text/") else BYTES}
        if operation.event is not None:
            media[ITEM_SCHEMA] = event = self._plugin.reference(operation.event)
            media["schema"]["contentSchema"] = event  # the nearest to it that 3.1 has
            media["examples"] = stream_example(event, self.components.schemas)
            media["schema"]["description"] = (
                "Server-sent events without name or id: each `data:` line is one "
                f"`{event['$ref'].rpartition('/')[2]}` as JSON; a line that begins with a colon "
                "is a comment."
            )
        headers = ["ETag"] if operation.is_conditional else []
        # What is described is JSON; of another kind that the caller may choose, only the kind is.
        content = {kind: media if kind in (JSON, kinds[0]) else {"schema": BYTES} for kind in kinds}
        return _answer(
            description, headers, content if operation.payloads else dict.fromkeys(kinds, media)
        )

    def _json(self, schema: JsonSchema) -> JsonSchema:
        return {"schema": schema, "examples": examples(schema, self.components.schemas)}

    def _envelope_of(self, operation: Operation) -> JsonSchema:
        """Return a reference to the envelope around an operation's payload."""
        shapes = [self._plugin.reference(payload) for payload in operation.payloads]
        data = {"oneOf": shapes} if len(shapes) > 1 else next(iter(shapes), NULL)
        envelope = _envelope({"type": "string", "const": ErrorCode.SUCCESS.value}, data)
        name = f"{'Or'.join(map(payload_name, operation.payloads)) or 'Done'}Answer"
        if self.components.schemas.setdefault(name, envelope) != envelope:
            raise ValueError(f"two payloads are called {name}")
        return {"$ref": f"#/components/schemas/{name}"}

    def _refusal(self, errors: Sequence[type[AppError]], operation: str) -> str:
        """Return the name of the component for these errors of one status; add it if need be."""
        status = status_of(errors[0])
        own_name = errors[0].__name__
        if len(errors) > 1:
            own_name = f"{operation[:1].upper()}{operation[1:]}{status.value}"
        name = SHARED.get(frozenset(errors), own_name)
        if name in self.components.responses:
            return name
        for error in errors:
            self.components.examples.setdefault(error.__name__, _example(error))
        codes = {"type": "string", "enum": sorted({error.code.value for error in errors})}
        # Without a title some generators call the type InlineObject7.
        schema = {
            "title": f"{name}Answer",
            "allOf": [self._refusal_envelope(errors), {"properties": {"code": codes}}],
        }
        text = headline(errors[0]) if len(errors) == 1 else f"{status.phrase}: `code` says why."
        content = {JSON: {"schema": schema, "examples": _by_name(e.__name__ for e in errors)}}
        answer = _answer(text, HEADERS_BY_STATUS.get(status, []), content)
        self.components.response(name, answer)
        return name

    def _refusal_envelope(self, errors: Sequence[type[AppError]]) -> str:
        """Return the name of the envelope of refusals; add one if some of them tell facts."""
        telling = [error for error in errors if error.data]
        if not telling:
            return "ErrorAnswer"
        facts = {
            name: {"type": "boolean", "const": value, "description": headline(error)}
            for error in telling
            for name, value in (error.data or {}).items()
        }
        name = "".join(f"{error.__name__}OrNot" for error in telling) + "Answer"
        if name not in self.components.schemas:
            envelope = _envelope(ONE_CODE, {"type": ["object", "null"], "properties": facts})
            self.components.schema(name, envelope)
        return name

    def _add_errors(self) -> None:
        """Add the envelope of all errors, and their codes."""
        envelope = _envelope(ONE_CODE, NULL)
        envelope["description"] = "Any refusal; each operation lists its own codes"
        self.components.schema("ErrorAnswer", envelope)
        text = "Every code with which an operation is refused. More may be added later"
        codes = {example["value"]["code"] for example in self.components.examples.values()}
        codes |= {EndpointNotFound.code, MethodNotAllowed.code}  # which no operation has
        schema = {"type": "string", "description": text, "enum": sorted(codes)}
        self.components.schema("ErrorCode", schema)


def _tag(area: ModuleType) -> str:
    """Return the heading of an area's operations: its `TAG` if it has one, otherwise its name."""
    if tag := getattr(area, "TAG", None):
        return str(tag)
    words = area.__name__.rpartition(".")[2].replace("_", " ")
    return words.upper() if len(words) <= MAX_ABBREVIATION_LENGTH else words.capitalize()


def _parameters(operation: Operation, rule: Rule, method: str) -> Iterator[JsonSchema | str]:
    for variable in VARIABLE.finditer(rule.rule):
        schema = dict(KINDS.get(variable["kind"], {"type": "string", "minLength": 1}))
        yield {"in": "path", "name": variable["name"], "required": True, "schema": schema}
    if operation.query is not None:
        yield {"in": "query", "schema": operation.query}
    if method not in origin.SAFE_METHODS and SessionUserMismatch in _refusals(operation, method):
        yield USER_HEADER


def _requirements(operation: Operation, method: str) -> list[JsonSchema]:
    """Return the alternative ways to authenticate; an empty list if anyone may call."""
    csrf: JsonSchema = {} if method in origin.SAFE_METHODS else {"csrfToken": []}
    refresh: JsonSchema = {"refreshCookie": []} if operation.reads_refresh_cookie else {}
    ways: list[JsonSchema] = [{"accessCookie": [], **csrf}, {"bearer": []}]
    if operation.is_for_sessions:
        scopes = [operation.opened_by.value] if isinstance(operation.opened_by, Scope) else []
        token: list[JsonSchema] = [{"accessToken": scopes}] if operation.opened_by else []
        return [*({**way, **refresh} for way in ways), *token]
    if not refresh:
        return []
    # Refresh fails without the cookie; logout takes any credential, or none.
    is_required = TokenMissing in operation.errors
    return [{**refresh, **csrf}] if is_required else [{}, {**refresh, **csrf}, *ways]


def _refusals(operation: Operation, method: str) -> Iterable[type[AppError]]:
    """Return an operation's errors, those of the session guard's checks, and those of outages."""
    errors = [*operation.errors]
    if operation.is_for_sessions and method not in origin.SAFE_METHODS:
        errors += [*origin.SOURCE_ERRORS, *origin.CSRF_ERRORS, SessionUserMismatch]
    if operation.access and (operation.is_enveloped or operation.is_redirect):
        errors += OUTAGES
    return dict.fromkeys(errors)


def _access_sentence(operation: Operation) -> str:
    """Return a sentence that says who may call; "" for anonymous access."""
    if not operation.is_for_sessions:
        return ""
    who = "an administrator" if operation.access == "admin" else "a signed-in account"
    while_due = ", also while a password change is due" if operation.during_password_change else ""
    return f"For {who}{while_due}. {_tokens_sentence(operation)}"


def _tokens_sentence(operation: Operation) -> str:
    """Return a sentence that says which access tokens open an operation for sessions."""
    if operation.opened_by is None:
        return "Closed to access tokens."
    if isinstance(operation.opened_by, Scope):
        return f"Also for access tokens with the scope `{operation.opened_by}`."
    return "Also for every access token."


def _envelope(code: JsonSchema, data: JsonSchema) -> JsonSchema:
    """Return the four-key object around every JSON response."""
    members = {"code": code, "msg": {"type": "string"}, "data": data, "error": NULL}
    return {"type": "object", "required": list(members), "properties": members}


def _answer(
    description: str, headers: Iterable[str] = (), content: JsonSchema | None = None
) -> JsonSchema:
    answer = {"description": description, "headers": _by_name(["X-Request-ID", *headers])}
    return {**answer, "content": content} if content else answer


def _by_name(names: Iterable[str]) -> dict[str, str]:
    """Return components of these names, each under its own."""
    return {name: name for name in names}


def _example(error: type[AppError]) -> JsonSchema:
    value = {"code": error.code.value, "msg": error.example(), "data": error.data, "error": None}
    return {"summary": f"{error.code.value}: {headline(error)}", "value": value}
