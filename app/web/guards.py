"""What a route asks of its caller before anything else: a rate limit, a source, a session, time.

The check of a session itself belongs to the sessions area and is injected by the factory.
"""

from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from typing import Any, Literal

from flask import Flask, current_app, request
from sqlalchemy.orm import Session

from app.core import setting_kinds
from app.core.access import (
    AccountDisabled,
    AdminNetworkRequired,
    AdminRequired,
    ConfirmationRequired,
    Operator,
    PasswordChangeRequired,
    Principal,
    SessionUserMismatch,
    SwitchedOff,
    TokenExpired,
    TokenInvalid,
    TokenMissing,
)
from app.core.client import Client
from app.core.config import Bucket
from app.core.errors import RateLimited, Unauthenticated
from app.core.logs import note_caller
from app.core.runtime import Runtime
from app.core.setting_groups import Group
from app.crypto.tokens import random_fraction
from app.web import cookies, origin, peer
from app.web.operation import Access, Operation, View, operation_of
from app.web.runtime import runtime

BEARER = "Bearer "
# By it a page says whose session it believes to be in: cookies may have become another account's.
USER_HEADER = "X-Session-User"
ADMIN = "admin"
JITTER_SECONDS = 0.125
AUTHENTICATOR = "gatehouse_authenticate"
ADMIN_CHECK = "gatehouse_require_still_admin"

# How recent a confirmation must be where one is asked for whatever the settings say.
CONFIRMED_WITHIN = timedelta(minutes=15)
CONFIRMATION_MAX_AGE_SECONDS = setting_kinds.number(
    Group.SIGN_IN,
    "auth_confirmation_max_age_secs",
    "How long after a sign-in or a confirmation dangerous changes are allowed without confirming "
    "again; 0 asks only where it is always asked",
    0,
    unit="seconds",
    # With less, nobody could confirm and then change it back by hand in time.
    least=60,
    most=86_400,
    is_off_at_zero=True,
    is_guarded=True,
)

# "always", or only if the setting above is not 0.
Confirmation = Literal["always", "if_set"]
# What an administrator's request costs besides: a call to another host, or hashing a password.
Cost = Literal["outgoing", "hash"]
COST_BUCKETS = {"outgoing": Bucket(10 / 60, 10), "hash": Bucket(30 / 60, 30)}

SESSION_ERRORS = (RateLimited, TokenMissing, TokenExpired, TokenInvalid, AccountDisabled)
SIGNED_IN_ERRORS = (
    *origin.SOURCE_ERRORS,
    *origin.CSRF_ERRORS,
    *SESSION_ERRORS,
    SessionUserMismatch,
    PasswordChangeRequired,
    ConfirmationRequired,
)

# Resolves an access token to its principal, or raises what is wrong with it.
Authenticate = Callable[[Runtime, str], Principal]
# Raises if the principal is no administrator any more, in the transaction of a change.
AdminCheck = Callable[[Session, Principal], None]


def install(app: Flask, authenticate: Authenticate, require_still_admin: AdminCheck) -> None:
    """Register the checks that the guards use."""
    app.extensions[AUTHENTICATOR] = authenticate
    app.extensions[ADMIN_CHECK] = require_still_admin


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


def find_principal() -> Principal | None:
    """Return whose access token of a live session this request carries; None without one."""
    try:
        return authenticated()
    except (Unauthenticated, AccountDisabled):
        return None


def signed_in(*, confirmation: Confirmation | None = None) -> Principal:
    """Return the caller of an anonymous route that this request asks more of.

    Raises: what `login_required` answers with, which is SIGNED_IN_ERRORS.
    """
    principal = _principal()
    _require_confirmation(principal, confirmation)
    return principal


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


def login_required(
    *,
    during_password_change: bool = False,
    enabled_by: setting_kinds.Key[bool] | None = None,
    confirmation: Confirmation | None = None,
) -> Callable[[View], View]:
    """Require a signed-in caller, who is passed to the view as `principal`.

    `enabled_by` is the setting that opens the route. `confirmation`: whether that caller must have
    signed in or confirmed it recently.
    """

    def decorate(view: View) -> View:
        @wraps(view)
        def guard_and_call(**arguments: Any) -> Any:
            principal = _principal(during_password_change=during_password_change)
            if enabled_by and not runtime().settings.get(enabled_by):
                raise SwitchedOff
            _require_confirmation(principal, confirmation)
            return view(principal=principal, **arguments)

        operation = _describe(guard_and_call, "session", confirmation)
        if not during_password_change:
            operation.may_fail_with(PasswordChangeRequired)
        if enabled_by:
            operation.may_fail_with(SwitchedOff)
        return guard_and_call

    return decorate


def admin_required(
    *, cost: Cost | None = None, confirmation: Confirmation | None = None
) -> Callable[[View], View]:
    """Require an administrator, who is passed to the view as `by`; the role is read live.

    `cost` limits how often one administrator may call it; `confirmation` is as for
    `login_required`.
    """

    def decorate(view: View) -> View:
        @wraps(view)
        def guard_and_call(**arguments: Any) -> Any:
            return view(by=_operator(cost, confirmation), **arguments)

        return _for_administrators(guard_and_call, confirmation)

    return decorate


def admin_may_read(*, cost: Cost | None = None) -> Callable[[View], View]:
    """Require an administrator for a view that need not know which."""

    def decorate(view: View) -> View:
        @wraps(view)
        def guard_and_call(**arguments: Any) -> Any:
            _operator(cost)
            return view(**arguments)

        return _for_administrators(guard_and_call)

    return decorate


def _operator(cost: Cost | None = None, confirmation: Confirmation | None = None) -> Operator:
    principal = _principal()
    if principal.account.role != ADMIN:
        raise AdminRequired
    networks = runtime().config.admin_networks
    if networks and not peer.is_within(networks):
        raise AdminNetworkRequired
    _take_costly(principal, cost)
    _require_confirmation(principal, confirmation)
    check: AdminCheck = current_app.extensions[ADMIN_CHECK]
    return Operator(principal, peer.client(), check)


def _for_administrators(view: View, confirmation: Confirmation | None = None) -> View:
    operation = _describe(view, "admin", confirmation)
    operation.may_fail_with(PasswordChangeRequired, AdminRequired, AdminNetworkRequired)
    return view


def _describe(view: View, access: Access, confirmation: Confirmation | None) -> Operation:
    operation = operation_of(view)
    operation.access = access
    operation.may_fail_with(*SESSION_ERRORS)
    if confirmation:
        operation.may_fail_with(ConfirmationRequired, *origin.SOURCE_ERRORS)
    return operation


def _principal(*, during_password_change: bool = False) -> Principal:
    _take_token("session")
    if request.method not in origin.SAFE_METHODS and cookies.access_cookie() is not None:
        origin.check_source_and_token()
    principal = authenticated()
    if request.method not in origin.SAFE_METHODS:
        _require_believed_user(principal)
    if principal.is_limited_to_password_change and not during_password_change:
        raise PasswordChangeRequired
    return principal


def _require_believed_user(principal: Principal) -> None:
    """Refuse a change that a page intends for another account than the cookies belong to.

    Without the header, nothing is compared.
    """
    believed = request.headers.get(USER_HEADER, str(principal.user_id)).strip()
    if believed != str(principal.user_id):
        raise SessionUserMismatch


def _take_costly(principal: Principal, cost: Cost | None) -> None:
    rt = runtime()
    if cost and rt.config.rate_limits:
        rt.limits.rates.take(f"admin_{cost}", COST_BUCKETS[cost], str(principal.user_id))


def confirmation_window(rt: Runtime, kind: Confirmation) -> timedelta | None:
    """Return how old a confirmation may be; None if none is asked for."""
    seconds = rt.settings.get(CONFIRMATION_MAX_AGE_SECONDS)
    if seconds:
        return timedelta(seconds=seconds)
    return CONFIRMED_WITHIN if kind == "always" else None


def require_confirmation(by: Operator) -> None:
    """Ask for a recent confirmation, if the settings do, where it depends on what is changed.

    Raises: ConfirmationRequired.
    """
    if by.principal:
        _require_confirmation(by.principal, "if_set")


def _require_confirmation(principal: Principal, kind: Confirmation | None) -> None:
    rt = runtime()
    if kind and request.method in origin.SAFE_METHODS and cookies.access_cookie() is not None:
        origin.check_source(may_be_typed=True)  # downloads are counted, and their owner notified
    window = kind and confirmation_window(rt, kind)
    if window and seconds_confirmed(rt, principal, window) < 0:
        raise ConfirmationRequired


def seconds_confirmed(rt: Runtime, principal: Principal, window: timedelta) -> float:
    """Return how much longer the last confirmation counts, if it may be as old as `window`.

    Less than 0 if it no longer does.
    """
    if rt.clock.is_ahead(principal.confirmed_at):
        return -1
    return (principal.confirmed_at + window - rt.clock.now()).total_seconds()


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
    """Take a token for this request from the bucket of the caller's network."""
    rt = runtime()
    if (config := rt.config).rate_limits:
        bucket = config.anonymous_bucket if tier == "anonymous" else config.session_bucket
        network = Client(peer.client_address()).network
        rt.limits.rates.take(tier, bucket, network, is_network=True)
