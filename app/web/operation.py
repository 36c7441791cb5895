"""The envelope around every JSON answer, and what a route's decorators know about the route.

Every guard and loader records its part here, so the document cannot diverge from the code.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial, wraps
from http import HTTPStatus
from typing import Any, Literal

from flask import Response
from marshmallow import Schema, fields

from app.core.access import Scope
from app.core.errors import AppError, ErrorCode

View = Callable[..., Any]
Access = Literal["anonymous", "session", "admin"]
# What opens a route to access tokens: a scope, or any.
Opening = Scope | Literal["any"]
# A field if the payload is not an object but, say, a bare array.
Payload = Schema | fields.Field[Any]
# By the class of what a view returns, where a success depends on the account.
Payloads = Payload | Mapping[type, Payload] | None

# The heading in the API description of the areas made for administrators: their `TAG`.
ADMINISTRATION = "Administration"

_ATTRIBUTE = "__gatehouse_operation__"


@dataclass
class Operation:
    """One route as its decorators describe it.

    `data` is None if an envelope's payload is null, or if a bare response is not JSON. `event` is
    one event of an endless stream. `has_file` means a multipart body with a file. `name` is what
    clients generated from the description call the operation, by default the name of the view.
    `media_type` is None unless the view makes its answer itself; there are several if the caller
    chooses; one that may be a page redirects or answers with HTML. A conditional operation sends an
    ETag and may answer 304; one that may be empty may answer 204. `opened_by` is None if it is
    closed to access tokens.
    """

    name: str | None = None
    access: Access | None = None
    opened_by: Opening | None = None
    during_password_change: bool = False
    body: type[Schema] | None = None
    has_file: bool = False
    query: type[Schema] | None = None
    data: Payloads = None
    event: Payload | None = None
    status: int = 200
    media_type: str | tuple[str, ...] | None = None
    is_conditional: bool = False
    may_be_empty: bool = False
    may_be_page: bool = False
    reads_refresh_cookie: bool = False
    is_deprecated: bool = False
    errors: list[type[AppError]] = field(default_factory=list)

    @property
    def payloads(self) -> tuple[Payload, ...]:
        """The alternative payloads of a success; empty if the payload is null."""
        if isinstance(self.data, Mapping):
            return tuple(self.data.values())
        return () if self.data is None else (self.data,)

    @property
    def is_for_sessions(self) -> bool:
        """Whether only a signed-in account may call it."""
        return self.access in {"session", "admin"}

    @property
    def is_redirect(self) -> bool:
        """Whether a success sends a browser elsewhere; errors are envelopes all the same."""
        return self.status in {HTTPStatus.FOUND, HTTPStatus.SEE_OTHER}

    @property
    def is_enveloped(self) -> bool:
        """Whether a success is an envelope."""
        return self.media_type is None and not self.is_redirect

    def may_fail_with(self, *errors: type[AppError]) -> None:
        """Add documented refusals."""
        self.errors.extend(error for error in errors if error not in self.errors)


def operation_of(view: Any) -> Operation:
    """Return the description of a view, created at the first call."""
    if not hasattr(view, _ATTRIBUTE):
        setattr(view, _ATTRIBUTE, Operation())
    operation: Operation = getattr(view, _ATTRIBUTE)
    return operation


def answers(
    data: Payloads = None, *, errors: tuple[type[AppError], ...] = (), **described: Any
) -> Callable[[View], View]:
    """Answer with what the view returns: dumped by the schema that describes it, in the envelope.

    A response that the view made itself is passed on. `errors` are those of its use case,
    `described` are other members of `Operation`.
    """

    def decorate(view: View) -> View:
        @wraps(view)
        def call_and_dump(**arguments: Any) -> Response:
            result = view(**arguments)
            if isinstance(result, Response):
                return result
            return ok(_dumped(data, result), operation.status)

        operation = operation_of(call_and_dump)
        for name, value in {"data": data, **described}.items():
            setattr(operation, name, value)
        operation.may_fail_with(*errors)
        return call_and_dump

    return decorate


redirects = partial(answers, status=HTTPStatus.FOUND.value)


def _dumped(payload: Payloads, result: Any) -> Any:
    if isinstance(payload, Mapping):
        payload = payload[type(result)]
    if isinstance(payload, fields.Field):
        return payload.serialize("data", {"data": result})
    return payload and payload.dump(result)


def ok(data: Any = None, status: int = 200) -> Response:
    """Return a success response; `data` is None if an operation has no payload."""
    return _answer(ErrorCode.SUCCESS, "", data, status)


def fail(
    code: ErrorCode,
    message: str,
    status: int,
    headers: Mapping[str, str] | None = None,
    data: Mapping[str, bool] | None = None,
) -> Response:
    """Return an error response; `data` is None but for the few refusals that tell more."""
    response = _answer(code, message, data, status)
    response.headers.update(headers or {})
    return response


def _answer(code: ErrorCode, message: str, data: Any, status: int) -> Response:
    members = {"code": code.value, "msg": message, "data": data, "error": None}
    body = json.dumps(members, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # A lone surrogate in a message must not turn a refusal into an internal error.
    return Response(body.encode("utf-8", "replace"), status, content_type="application/json")
