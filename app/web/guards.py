"""The guards of routes that require a signed-in caller.

The check itself belongs to the sessions area and is injected by the factory.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, Protocol

from flask import Flask, current_app, request

from app.core.access import (
    AccountDisabled,
    AdminRequired,
    PasswordChangeRequired,
    Principal,
    TokenExpired,
    TokenInvalid,
    TokenMissing,
)
from app.core.errors import Forbidden, RateLimited, Unauthenticated
from app.core.logs import note_caller
from app.core.runtime import Runtime
from app.web import cookies, origin, rate_limit
from app.web.operation import Access, View, operation_of
from app.web.runtime import runtime

BEARER = "Bearer "
ADMIN = "admin"
AUTHENTICATOR = "gatehouse_authenticate"


class Authenticate(Protocol):
    """Resolves an access token to its principal, or raises what is wrong with it."""

    def __call__(self, rt: Runtime, token: str, /) -> Principal:
        """Check the token, its session and its account."""


def install(app: Flask, authenticate: Authenticate) -> None:
    """Register the check that the guards use."""
    app.extensions[AUTHENTICATOR] = authenticate


def presented_token() -> str | None:
    """Return the access token from the cookie, else from the bearer header; None without either."""
    cookie = cookies.access_cookie()
    if cookie is not None:
        return cookie
    header = request.environ.get("HTTP_AUTHORIZATION", "")
    return header[len(BEARER) :] if header.startswith(BEARER) else None


def authenticated() -> Principal:
    """Return the authenticated caller.

    Raises: TokenMissing, TokenExpired, TokenInvalid, AccountDisabled.
    """
    token = presented_token()
    if not token:
        raise TokenMissing
    authenticate: Authenticate = current_app.extensions[AUTHENTICATOR]
    principal = authenticate(runtime(), token)
    note_caller(principal.user_id, principal.session_id)
    return principal


def is_signed_in() -> bool:
    """Return whether this request carries the access token of a live session."""
    try:
        authenticated()
    except (Unauthenticated, AccountDisabled):
        return False
    return True


def login_required(*, during_password_change: bool = False) -> Callable[[View], View]:
    """Require a signed-in caller, who is passed to the view as `principal`."""

    def check(principal: Principal) -> None:
        if principal.is_limited_to_password_change and not during_password_change:
            raise PasswordChangeRequired

    errors = () if during_password_change else (PasswordChangeRequired,)
    return _guard("session", check, errors)


def admin_required() -> Callable[[View], View]:
    """Like `login_required`, for administrators only; the role is read live."""

    def check(principal: Principal) -> None:
        if principal.is_limited_to_password_change:
            raise PasswordChangeRequired
        if principal.account.role != ADMIN:
            raise AdminRequired

    return _guard("admin", check, (PasswordChangeRequired, AdminRequired))


def _guard(
    access: Access, check: Callable[[Principal], None], errors: tuple[type[Forbidden], ...]
) -> Callable[[View], View]:
    def decorate(view: View) -> View:
        @wraps(view)
        def guard_and_call(**arguments: Any) -> Any:
            rate_limit.take_token("session")
            if request.method not in origin.SAFE_METHODS and cookies.access_cookie() is not None:
                origin.check_source_and_token()
            principal = authenticated()
            check(principal)
            return view(principal=principal, **arguments)

        operation = operation_of(guard_and_call)
        operation.access = access
        operation.may_fail_with(
            RateLimited, TokenMissing, TokenExpired, TokenInvalid, AccountDisabled, *errors
        )
        return guard_and_call

    return decorate
