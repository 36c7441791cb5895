"""Decorators that validate a request's body or query and pass it to the view as an argument."""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import wraps
from itertools import islice
from typing import Any, Literal, NoReturn

import gevent
from flask import request
from marshmallow import Schema, ValidationError
from werkzeug.exceptions import RequestEntityTooLarge
from werkzeug.routing import BaseConverter

from app.core.errors import AppError, BadRequest, TooLarge
from app.core.multipart import BodyUnreadable, MultipartBody
from app.core.texts import parsed_id
from app.web.operation import View, operation_of
from app.web.runtime import runtime


class RowId(BaseConverter):
    """An id in a path, as `<row:id>`; anything else reads as 0, which no row has.

    So an id that cannot exist is answered like one that does not, after the checks that come first.
    """

    def to_python(self, value: str) -> int:
        """Return the id, or 0."""
        return parsed_id(value) or 0


JSON_BODY_LIMIT = 1024 * 1024
PIECE_BYTES = 128 * 1024
# Slow bodies tie up connections: the OWASP Denial of Service Cheat Sheet asks for a minimum rate
# and a maximum time. A file, which an account sends over a perhaps slow line, has this time for
# each piece, anything else for all of it.
BODY_SECONDS = 30.0
PIECE_SECONDS = 120.0
MAX_COMPLAINTS = 10


def json_body(schema_class: type[Schema]) -> Callable[[View], View]:
    """Check the JSON object of the request and pass its members to the view by name."""
    return _members("body", "JSON request body", schema_class, _json_object, TooLarge)


def query_args(schema_class: type[Schema]) -> Callable[[View], View]:
    """Check the query string and pass its members to the view by name."""
    return _members("query", "query", schema_class, lambda: request.args.to_dict())


def _members(
    kind: Literal["body", "query"],
    what: str,
    schema_class: type[Schema],
    read: Callable[[], dict[str, Any]],
    *errors: type[AppError],
) -> Callable[[View], View]:
    schema = schema_class()

    def decorate(view: View) -> View:
        @wraps(view)
        def load_and_call(**arguments: Any) -> Any:
            try:
                members: dict[str, Any] = schema.load(read())
            except ValidationError as error:
                raise BadRequest(f"invalid {what}: {all_complaints(error)}") from None
            return view(**members, **arguments)

        operation = operation_of(load_and_call)
        setattr(operation, kind, schema_class)
        operation.may_fail_with(BadRequest, *errors)
        return load_and_call

    return decorate


def file_body(view: View) -> View:
    """Pass the multipart body to the view as `upload`, unread; it may arrive slowly.

    What the view leaves unread is drained before the response, for a while: closing a connection
    with data in flight resets it, and the client might never see the response.
    """

    @wraps(view)
    def open_and_call(**arguments: Any) -> Any:
        body = _multipart_body()
        try:
            return view(upload=body, **arguments)
        finally:
            with suppress(BodyUnreadable), gevent.Timeout(BODY_SECONDS, BodyUnreadable):
                while body.read():
                    pass

    operation_of(open_and_call).has_file = True
    return open_and_call


def _multipart_body() -> MultipartBody:
    is_multipart = request.mimetype == "multipart/form-data"
    boundary = request.mimetype_params.get("boundary") if is_multipart else None
    request.max_content_length = None
    stream, missing = request.stream, request.content_length

    def read() -> bytes:
        nonlocal missing
        try:
            # Data that has already arrived is read without blocking, so nothing else yields.
            runtime().clock.sleep(0)
            with gevent.Timeout(PIECE_SECONDS, TimeoutError):
                chunk = stream.read(PIECE_BYTES)
        # The servers' own errors for broken framing have no common base class.
        except Exception as error:
            raise BodyUnreadable from error
        if missing is not None:
            # A server reports a closed connection as the end of the body.
            missing -= len(chunk)
            if not chunk and missing > 0:
                raise BodyUnreadable
        return chunk

    return MultipartBody(boundary, read)


def _complaints(messages: Any, *path: str) -> Iterator[str]:
    """Yield the path of each invalid field, however nested, and what is wrong with it."""
    if isinstance(messages, dict):
        for name, complaint in messages.items():
            yield from _complaints(complaint, *path, str(name))
        return
    reason = messages[0] if isinstance(messages, list) else messages
    yield f"{'.'.join(path)}: {str(reason).rstrip('.')}"


def all_complaints(error: ValidationError) -> str:
    """Return at most MAX_COMPLAINTS on one line: a list may have as many as a body has bytes."""
    named = list(islice(_complaints(error.messages), MAX_COMPLAINTS + 1))
    if len(named) > MAX_COMPLAINTS:
        named[MAX_COMPLAINTS] = "and more"
    return "; ".join(named)


def _json_object() -> dict[str, Any]:
    if request.mimetype != "application/json":
        raise BadRequest("invalid JSON request body: Content-Type must be application/json")
    body = _whole_body()
    try:
        value = json.loads(body.decode("utf-8-sig"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise BadRequest("invalid JSON request body: not well-formed JSON") from None
    if not isinstance(value, dict):
        raise BadRequest("invalid JSON request body: must be an object")
    return value


def _whole_body() -> bytes:
    # Werkzeug truncates a chunked body at this limit without an error, so one byte more is read.
    request.max_content_length = JSON_BODY_LIMIT + 1
    try:
        with gevent.Timeout(BODY_SECONDS, TimeoutError):
            body = request.get_data(cache=False)
    except RequestEntityTooLarge:
        raise
    except Exception:  # gunicorn's errors for broken chunks have no common base, and quote the body
        body = b""
    if len(body) > JSON_BODY_LIMIT:
        raise TooLarge
    # A server reports a closed connection as the end of the body.
    if not body or len(body) < (request.content_length or 0):
        raise BadRequest("invalid JSON request body: it is incomplete")
    return body


def _refuse_constant(_name: str) -> NoReturn:
    raise ValueError("NaN and Infinity are not JSON")
