"""What a route asks of its caller before anything else: a rate limit, a source, a session, time.

The check of a session itself belongs to the sessions area and is injected by the factory.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, Literal

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
from app.core.client import Client
from app.core.errors import RateLimited, Unauthenticated
from app.core.logs import note_caller
from app.core.runtime import Runtime
from app.core.tokens import random_fraction
from app.web import cookies, origin, peer
from app.web.operation import Access, View, operation_of
from app.web.runtime import runtime

BEARER = "Bearer "
ADMIN = "admin"
JITTER_SECONDS = 0.125
AUTHENTICATOR = "gatehouse_authenticate"


# Resolves an access token to its principal, or raises what is wrong with it.
Authenticate = Callable[[Runtime, str], Principal]


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


def anonymous_route(*, source_check: bool = False) -> Callable[[View], View]:
    """Rate-limit the caller and, with `source_check`, refuse cross-site requests."""

    def decorate(view: View) -> View:
        @wraps(view)
        def guard_and_call(**arguments: Any) -> Any:
            _take_token("anonymous")
            if source_check:
                origin.check_source()
            return view(**arguments)

        operation = operation_of(guard_and_call)
        operation.access = "anonymous"
        operation.may_fail_with(RateLimited, *(origin.SOURCE_ERRORS if source_check else ()))
        return guard_and_call

    return decorate


def login_required(*, during_password_change: bool = False) -> Callable[[View], View]:
    """Require a signed-in caller, who is passed to the view as `principal`."""
    return _guard("session", during_password_change=during_password_change)


def admin_required() -> Callable[[View], View]:
    """Like `login_required`, for administrators only; the role is read live."""
    return _guard("admin")


def _guard(access: Access, *, during_password_change: bool = False) -> Callable[[View], View]:
    def decorate(view: View) -> View:
        @wraps(view)
        def guard_and_call(**arguments: Any) -> Any:
            _take_token("session")
            if request.method not in origin.SAFE_METHODS and cookies.access_cookie() is not None:
                origin.check_source_and_token()
            principal = authenticated()
            if principal.is_limited_to_password_change and not during_password_change:
                raise PasswordChangeRequired
            if access == "admin" and principal.account.role != ADMIN:
                raise AdminRequired
            return view(principal=principal, **arguments)

        operation = operation_of(guard_and_call)
        operation.access = access
        operation.may_fail_with(
            RateLimited, TokenMissing, TokenExpired, TokenInvalid, AccountDisabled
        )
        if not during_password_change:
            operation.may_fail_with(PasswordChangeRequired)
        if access == "admin":
            operation.may_fail_with(AdminRequired)
        return guard_and_call

    return decorate


def minimum_duration(view: View) -> View:
    """Respond no sooner than the configured floor plus jitter, on success and failure alike.

    The work is done within that time, so its duration does not reveal whether an account exists.
    """

    @wraps(view)
    def pad_and_call(**arguments: Any) -> Any:
        rt = runtime()
        floor = rt.config.response_floor_ms / 1000
        jitter = JITTER_SECONDS * random_fraction() if floor else 0
        ends_at = rt.clock.monotonic() + floor + jitter
        try:
            return view(**arguments)
        finally:
            if (left := ends_at - rt.clock.monotonic()) > 0:
                rt.clock.sleep(left)

    return pad_and_call


def _take_token(tier: Literal["anonymous", "session"]) -> None:
    """Take a token for this request from the bucket of the caller's network.

    Raises: RateLimited.
    """
    rt = runtime()
    if (config := rt.config).rate_limits:
        bucket = config.anonymous_bucket if tier == "anonymous" else config.session_bucket
        network = Client(peer.client_address()).network
        rt.limits.rates.take(tier, bucket, network, is_network=True)
