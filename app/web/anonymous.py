"""The guard of routes that need no login."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from app.core.errors import RateLimited
from app.web import origin, rate_limit
from app.web.operation import View, operation_of


def anonymous_route(*, source_check: bool = False) -> Callable[[View], View]:
    """Rate-limit the caller and, with `source_check`, refuse cross-site requests."""

    def decorate(view: View) -> View:
        @wraps(view)
        def guard_and_call(**arguments: Any) -> Any:
            rate_limit.take_token("anonymous")
            if source_check:
                origin.check_source()
            return view(**arguments)

        operation = operation_of(guard_and_call)
        operation.access = "anonymous"
        operation.may_fail_with(RateLimited, *(origin.SOURCE_ERRORS if source_check else ()))
        return guard_and_call

    return decorate
