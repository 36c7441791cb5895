"""What a route's decorators know about it, gathered for the API description.

Every guard and loader records its part here, so the document cannot diverge from the code.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Literal, TypeVar

from flask import Response
from marshmallow import Schema, fields

from app.core.errors import AppError
from app.web.envelope import ok

View = Callable[..., Any]
Access = Literal["anonymous", "session", "admin"]
# A field if the payload is not an object but, say, a bare array.
Payload = Schema | fields.Field[Any]
# By the class of what a view returns, where a success depends on the account.
Payloads = Payload | Mapping[type, Payload] | None
V = TypeVar("V", bound=View)

_ATTRIBUTE = "__gatehouse_operation__"


@dataclass
class Operation:
    """One route as its decorators describe it.

    `data` is None if an envelope's payload is null, or if a bare response is not JSON. `event` is
    one event of an endless stream. `has_file` means a multipart body with a file. `name` is what
    clients generated from the description call the operation, by default the name of the view.
    """

    name: str | None = None
    access: Access | None = None
    body: type[Schema] | None = None
    has_file: bool = False
    query: type[Schema] | None = None
    data: Payloads = None
    event: Payload | None = None
    status: int = 200
    media_type: str = "application/json"
    is_enveloped: bool = True
    is_conditional: bool = False
    may_be_empty: bool = False
    reads_refresh_cookie: bool = False
    is_redirect: bool = False
    is_deprecated: bool = False
    errors: list[type[AppError]] = field(default_factory=list)

    @property
    def payloads(self) -> tuple[Payload, ...]:
        """The alternative payloads of a success; empty if the payload is null."""
        if isinstance(self.data, Mapping):
            return tuple(self.data.values())
        return () if self.data is None else (self.data,)

    def may_fail_with(self, *errors: type[AppError]) -> None:
        """Add documented refusals."""
        self.errors.extend(error for error in errors if error not in self.errors)


def operation_of(view: Any) -> Operation:
    """Return the description of a view, created at the first call."""
    if not hasattr(view, _ATTRIBUTE):
        setattr(view, _ATTRIBUTE, Operation())
    operation: Operation = getattr(view, _ATTRIBUTE)
    return operation


def reads_refresh_cookie(view: V) -> V:
    """Record that a view identifies the session by the refresh cookie."""
    operation_of(view).reads_refresh_cookie = True
    return view


def answers(
    data: Payloads = None,
    *,
    status: int = 200,
    errors: tuple[type[AppError], ...] = (),
    name: str | None = None,
) -> Callable[[View], View]:
    """Answer with what the view returns: dumped by the schema that describes it, in the envelope.

    A response that the view made itself is passed on. `errors` are those of its use case.
    """

    def decorate(view: View) -> View:
        @wraps(view)
        def call_and_dump(**arguments: Any) -> Response:
            result = view(**arguments)
            return result if isinstance(result, Response) else ok(_dumped(data, result), status)

        operation = operation_of(call_and_dump)
        operation.name = name
        operation.data, operation.status = data, status
        operation.may_fail_with(*errors)
        return call_and_dump

    return decorate


def _dumped(payload: Payloads, result: Any) -> Any:
    if isinstance(payload, Mapping):
        payload = payload[type(result)]
    if isinstance(payload, fields.Field):
        return payload.serialize("data", {"data": result})
    return payload and payload.dump(result)


def answers_raw(
    media_type: str,
    data: Payload | None = None,
    *,
    event: Payload | None = None,
    is_conditional: bool = False,
    may_be_empty: bool = False,
    errors: tuple[type[AppError], ...] = (),
    name: str | None = None,
) -> Callable[[V], V]:
    """Describe a view whose success is not an envelope.

    A conditional one sends an ETag and may answer 304; one that may be empty may answer 204.
    """

    def note(view: V) -> V:
        operation = operation_of(view)
        operation.name = name
        operation.media_type, operation.data = media_type, data
        operation.event = event
        operation.is_enveloped, operation.is_conditional = False, is_conditional
        operation.may_be_empty = may_be_empty
        operation.may_fail_with(*errors)
        return view

    return note


def redirects(
    *, errors: tuple[type[AppError], ...] = (), name: str | None = None
) -> Callable[[V], V]:
    """Describe a view that redirects a browser; its errors are envelopes all the same."""

    def note(view: V) -> V:
        operation = operation_of(view)
        operation.name = name
        operation.status, operation.is_enveloped, operation.is_redirect = 302, False, True
        operation.may_fail_with(*errors)
        return view

    return note
