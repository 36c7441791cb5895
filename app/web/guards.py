"""What a route asks of its caller before anything else: a rate limit, a source, a session, time.

The check of a session itself belongs to the sessions area and is injected by the factory.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial, wraps
from typing import Any, Literal

from flask import Flask, Response, after_this_request, current_app, request
from sqlalchemy.orm import Session

from app.core import setting_kinds
from app.core.access import (
    NEVER,
    PROGRAM_TOKEN_PREFIX,
    AccountDisabled,
    AdminNetworkRequired,
    AdminRequired,
    ClosedToTokens,
    ConfirmationRequired,
    Operator,
    PasswordChangeRequired,
    PendingActivation,
    Principal,
    Program,
    ProgramToken,
    Scope,
    ScopeMissing,
    SessionUserMismatch,
    SwitchedOff,
    TokenExpired,
    TokenInvalid,
    TokenMissing,
)
from app.core.client import Client
from app.core.config import Bucket
from app.core.errors import AppError, RateLimited, Unauthenticated
from app.core.logs import note_caller
from app.core.runtime import Runtime
from app.core.setting_groups import Group
from app.crypto.tokens import random_fraction
from app.web import cookies, metrics, origin, peer
from app.web.operation import Access, Opening, Operation, View, operation_of
from app.web.runtime import runtime

BEARER = "Bearer "
# By it a page says whose session it believes to be in: cookies may have become another account's.
USER_HEADER = "X-Session-User"
ADMIN = "admin"
JITTER_SECONDS = 0.125
CHECKS = "gatehouse_access_checks"

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

TOKEN_ERRORS = (PendingActivation, ClosedToTokens)
SESSION_ERRORS = (
    RateLimited,
    TokenMissing,
    TokenExpired,
    TokenInvalid,
    AccountDisabled,
    *TOKEN_ERRORS,
)
SIGNED_IN_ERRORS = (
    *origin.SOURCE_ERRORS,
    *origin.CSRF_ERRORS,
    *SESSION_ERRORS,
    SessionUserMismatch,
    PasswordChangeRequired,
    ConfirmationRequired,
)

# How a request with an access token ended here, for the metrics; other errors are outages.
OUTCOMES: dict[type[AppError], str] = {
    TokenInvalid: "invalid",
    TokenExpired: "expired",
    RateLimited: "rate_limited",
    AccountDisabled: "disabled",
    PendingActivation: "pending",
    PasswordChangeRequired: "password_change",
    ClosedToTokens: "closed",
    ScopeMissing: "scope_missing",
    AdminRequired: "not_admin",
    AdminNetworkRequired: "network",
}


@dataclass(frozen=True)
class Checks:
    """What higher areas do for the guards.

    `authenticate` resolves the token of a session, `authenticate_program` an access token, or
    raises what is wrong with it. `note_use` notes from where one was used. `require_still_admin`
    raises if the caller is no administrator any more, in the transaction of a change.
    """

    authenticate: Callable[[Runtime, str], Principal]
    authenticate_program: Callable[[Runtime, str], Program]
    note_use: Callable[[Runtime, ProgramToken, str | None], None]
    require_still_admin: Callable[[Runtime, Session, Principal | Program], None]


def install(app: Flask, checks: Checks) -> None:
    """Register the checks that the guards use."""
    app.extensions[CHECKS] = checks


def _checks() -> Checks:
    checks: Checks = current_app.extensions[CHECKS]
    return checks


def presented_token() -> str | None:
    """Return the access token from the cookie, else from the bearer header; None without either."""
    cookie = cookies.access_cookie()
    if cookie is not None:
        return cookie
    header = request.environ.get("HTTP_AUTHORIZATION", "")
    return header[len(BEARER) :] if header.startswith(BEARER) else None


def authenticated() -> Principal:
    """Return who is signed in.

    Raises: TokenMissing, TokenExpired, TokenInvalid, AccountDisabled.
    """
    token = presented_token()
    if not token:
        raise TokenMissing
    principal = _checks().authenticate(runtime(), token)
    note_caller(principal.user_id, session_id=principal.session_id)
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
    opened_by: Opening | None = None,
    during_password_change: bool = False,
    enabled_by: setting_kinds.Key[bool] | None = None,
    confirmation: Confirmation | None = None,
) -> Callable[[View], View]:
    """Require a signed-in caller, who is passed to the view as `principal`.

    `opened_by` is what opens the route to programs with an access token; a view that has it takes
    `Principal | Program`. `enabled_by` is the setting that opens the route. `confirmation`: whether
    that caller must have signed in or confirmed it recently.
    """

    def decorate(view: View) -> View:
        @wraps(view)
        def guard_and_call(**arguments: Any) -> Any:
            principal = _caller(opened_by, during_password_change=during_password_change)
            if enabled_by and not runtime().settings.get(enabled_by):
                raise SwitchedOff
            _require_confirmation(principal, confirmation)
            return view(principal=principal, **arguments)

        operation = _describe(guard_and_call, "session", opened_by, confirmation)
        operation.during_password_change = during_password_change
        if opened_by or not during_password_change:
            operation.may_fail_with(PasswordChangeRequired)
        if enabled_by:
            operation.may_fail_with(SwitchedOff)
        return guard_and_call

    return decorate


def admin_required(
    *,
    opened_by: Scope | None = None,
    cost: Cost | None = None,
    confirmation: Confirmation | None = None,
) -> Callable[[View], View]:
    """Require an administrator, who is passed to the view as `by`; the role is read live.

    `cost` limits how often one administrator may call it; `opened_by` and `confirmation` are as for
    `login_required`, but that no token is ever asked for a confirmation.
    """

    def decorate(view: View) -> View:
        @wraps(view)
        def guard_and_call(**arguments: Any) -> Any:
            return view(by=_operator(opened_by, cost, confirmation), **arguments)

        return _for_administrators(guard_and_call, opened_by, confirmation)

    return decorate


def admin_may_read(
    *, opened_by: Scope | None = Scope.ADMIN_READ, cost: Cost | None = None
) -> Callable[[View], View]:
    """Require an administrator for a view that only reads, and need not know which.

    Unlike other routes it is open to access tokens; an unsafe method says for itself what opens it.
    """

    def decorate(view: View) -> View:
        @wraps(view)
        def guard_and_call(**arguments: Any) -> Any:
            _operator(opened_by, cost)
            return view(**arguments)

        return _for_administrators(guard_and_call, opened_by)

    return decorate


def _operator(
    opened_by: Scope | None, cost: Cost | None = None, confirmation: Confirmation | None = None
) -> Operator:
    caller = _caller(opened_by, is_for_administrators=True)
    _take_costly(caller, cost)
    _require_confirmation(caller, confirmation)
    check, rt = _checks().require_still_admin, runtime()
    return Operator(caller, peer.client(), lambda session: check(rt, session, caller))


def _for_administrators(
    view: View, opened_by: Scope | None, confirmation: Confirmation | None = None
) -> View:
    operation = _describe(view, "admin", opened_by, confirmation)
    operation.may_fail_with(PasswordChangeRequired, AdminRequired, AdminNetworkRequired)
    return view


def _describe(
    view: View, access: Access, opened_by: Opening | None, confirmation: Confirmation | None
) -> Operation:
    operation = operation_of(view)
    operation.access, operation.opened_by = access, opened_by
    operation.may_fail_with(*SESSION_ERRORS)
    if isinstance(opened_by, Scope):
        operation.may_fail_with(ScopeMissing)
    if confirmation:
        operation.may_fail_with(ConfirmationRequired, *origin.SOURCE_ERRORS)
    return operation


def _principal() -> Principal:
    """Return who is signed in, on a route that is closed to programs."""
    caller = _caller(None)
    if isinstance(caller, Program):
        raise ClosedToTokens
    return caller


def _caller(
    opened_by: Opening | None,
    *,
    during_password_change: bool = False,
    is_for_administrators: bool = False,
) -> Principal | Program:
    """Return whoever may call this route, by the one credential that counts."""
    _take_token("session")
    token = presented_token()
    if cookies.access_cookie() is None and token and token.startswith(PROGRAM_TOKEN_PREFIX):
        return _program(token, opened_by, is_for_administrators=is_for_administrators)
    if request.method not in origin.SAFE_METHODS and cookies.access_cookie() is not None:
        origin.check_source_and_token()
    principal = authenticated()
    if request.method not in origin.SAFE_METHODS:
        _require_believed_user(principal)
    if principal.is_limited_to_password_change and not during_password_change:
        raise PasswordChangeRequired
    if is_for_administrators:
        _require_administrator(principal)
    return principal


def _program(token: str, opened_by: Opening | None, *, is_for_administrators: bool) -> Program:
    """Return the program with this token, if the route is open to it, and count the request."""
    rt, outcome = runtime(), "unavailable"
    try:
        program = _checks().authenticate_program(rt, token)
        note_caller(program.user_id, token_id=program.token.id)
        _require_opened(program, opened_by)
        if is_for_administrators:
            _require_administrator(program)
        outcome = "accepted"
    except AppError as error:
        outcome = OUTCOMES.get(type(error), outcome)
        raise
    finally:
        metrics.TOKEN_REQUESTS.labels(opened_by or "none", outcome).inc()
    request.environ[peer.TOKEN_ID] = program.token.id
    _note_use(program)
    return program


def _require_opened(program: Program, opened_by: Opening | None) -> None:
    if opened_by is None:
        raise ClosedToTokens
    if isinstance(opened_by, Scope) and not any(
        scope.opens(opened_by) for scope in program.token.scopes
    ):
        raise ScopeMissing(opened_by)


def _require_administrator(caller: Principal | Program) -> None:
    if caller.account.role != ADMIN:
        raise AdminRequired
    networks = runtime().config.admin_networks
    if networks and not peer.is_within(networks):
        raise AdminNetworkRequired


def _note_use(program: Program) -> None:
    """Have the use of a token noted once the request is answered; a stream is answered at once."""
    note = partial(_checks().note_use, runtime(), program.token, peer.client_address())

    @after_this_request
    def after(response: Response) -> Response:
        if response.direct_passthrough:
            note()
        else:
            response.call_on_close(note)
        return response


def _require_believed_user(principal: Principal) -> None:
    """Refuse a change that a page intends for another account than the cookies belong to.

    Without the header, nothing is compared.
    """
    believed = request.headers.get(USER_HEADER, str(principal.user_id)).strip()
    if believed != str(principal.user_id):
        raise SessionUserMismatch


def _take_costly(caller: Principal | Program, cost: Cost | None) -> None:
    rt = runtime()
    if cost and rt.config.rate_limits:
        rt.limits.rates.take(f"admin_{cost}", COST_BUCKETS[cost], str(caller.user_id))


def confirmation_window(rt: Runtime, kind: Confirmation) -> timedelta | None:
    """Return how old a confirmation may be; None if none is asked for."""
    seconds = rt.settings.get(CONFIRMATION_MAX_AGE_SECONDS)
    if seconds:
        return timedelta(seconds=seconds)
    return CONFIRMED_WITHIN if kind == "always" else None


def require_confirmation(by: Operator) -> None:
    """Ask for a recent confirmation, if the settings do, where it depends on what is changed.

    Raises: ConfirmationRequired; ClosedToTokens, as what asks for one is closed to programs.
    """
    require_person(by)
    if by.principal:
        _require_confirmation(by.principal, "if_set")


def require_person(by: Operator) -> None:
    """Refuse a program where it depends on what is changed.

    Raises: ClosedToTokens.
    """
    if isinstance(by.principal, Program):
        raise ClosedToTokens


def _require_confirmation(caller: Principal | Program, kind: Confirmation | None) -> None:
    if isinstance(caller, Program):
        return  # what asks for a confirmation is closed to programs, or open on purpose
    rt = runtime()
    if kind and request.method in origin.SAFE_METHODS and cookies.access_cookie() is not None:
        origin.check_source(may_be_typed=True)  # downloads are counted, and their owner notified
    window = kind and confirmation_window(rt, kind)
    # Without the second step, a session could add what then confirms it, such as a passkey.
    is_adding = kind is not None and request.method != "DELETE"
    has_skipped = is_adding and caller.confirmed_at == NEVER
    if has_skipped or (window and seconds_confirmed(rt, caller, window) < 0):
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
