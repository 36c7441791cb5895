"""/auth/external-auth."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from flask import Blueprint, Response, after_this_request, request
from flask.typing import ResponseReturnValue
from marshmallow import fields

from app.contact_verification.errors import ContactVerificationInvalid
from app.core.access import AccountDisabled, Principal
from app.core.errors import BadRequest
from app.external_auth import links, mailbox, password_link, providers, responses, service
from app.external_auth.drivers.errors import DiscoveryFailed, ProviderMisconfigured
from app.external_auth.errors import (
    CallbackAddressMissing,
    FlowTokenInvalid,
    KindUnknown,
    LinkConflict,
    LinkNotFound,
    PasswordMissing,
    PolicyDenied,
    ProviderDisabled,
    ProviderKeyInvalid,
    ProviderNotFound,
    ReturnPathInvalid,
)
from app.external_auth.mailbox import MailLinkFailure
from app.external_auth.schemas import (
    CallbackQuery,
    ConfirmMailboxQuery,
    ExternalLinkItem,
    LinkExternalIdentitySchema,
    PublicProviderItem,
    RequestExternalEmailSchema,
    StartedExternalLoginData,
    StartExternalLoginSchema,
)
from app.external_auth.service import PREFIX, UNIFIED_CALLBACK, CallbackRequest, SignInResult
from app.login import sign_in_methods
from app.login.errors import CredentialsFailed, LastWayIn, PasswordLoginDisabled
from app.login.schemas import LOGIN_STEP
from app.login.service import LoginOutcome, MfaRequired
from app.registration.errors import RegistrationDisabled
from app.users.errors import EmailInvalid, PendingActivation
from app.web import cookies, origin
from app.web.anonymous import anonymous_route
from app.web.envelope import ok
from app.web.guards import login_required
from app.web.operation import View, answers, operation_of, redirects
from app.web.padding import minimum_duration
from app.web.peer import client
from app.web.redirects import LOGIN_PAGE, to_page
from app.web.request import json_body, query_args
from app.web.runtime import runtime
from app.web.schema import MessageData

MAIL_SENT = "external auth email verification email sent"
# RFC 9745: the legacy route is deprecated since 2026-11-21, UTC.
DEPRECATED_SINCE = "@1795219200"

bp = Blueprint("external_auth", __name__, url_prefix=PREFIX)


def _deprecated(view: View) -> View:
    """Mark every response of a route as deprecated, and name its successor (E34)."""

    @wraps(view)
    def mark_and_call(**arguments: Any) -> Any:
        @after_this_request
        def mark(response: Response) -> Response:
            response.headers["Deprecation"] = DEPRECATED_SINCE
            response.headers["Link"] = f'<{UNIFIED_CALLBACK}>; rel="successor-version"'
            return response

        return view(**arguments)

    operation_of(mark_and_call).is_deprecated = True
    return mark_and_call


def _password_login_required(view: View) -> View:
    """Refuse, before the body is read, while password logins are disabled (spec 03 §8.3)."""

    @wraps(view)
    def check_and_call(**arguments: Any) -> Any:
        sign_in_methods.require_password_login(runtime())
        return view(**arguments)

    return check_and_call


@bp.get("/providers")
@anonymous_route()
@answers(fields.List(fields.Nested(PublicProviderItem)), name="listExternalProviders")
def list_providers() -> ResponseReturnValue:
    """List the providers that can be used to sign in, by display name."""
    return ok([responses.public_provider(found) for found in providers.list_enabled(runtime())])


@bp.post("/<kind>/<provider>/start")
@anonymous_route()
@json_body(StartExternalLoginSchema)
@answers(
    StartedExternalLoginData(),
    errors=(
        *origin.SOURCE_ERRORS,
        KindUnknown,
        ProviderKeyInvalid,
        ProviderNotFound,
        ProviderDisabled,
        ReturnPathInvalid,
        CallbackAddressMissing,
        DiscoveryFailed,
        ProviderMisconfigured,
    ),
    name="startExternalLogin",
)
def start(kind: str, provider: str, body: dict[str, Any]) -> ResponseReturnValue:
    """Begin a sign-in: send the browser to `authorization_url`; it comes back to the callback.

    A cookie ties the sign-in to this browser. `return_path` is the path of this site to which the
    browser is sent in the end.
    """
    origin.check_source()
    started = service.start(
        runtime(),
        kind=kind,
        provider=provider,
        wanted_path=body["return_path"],
        own_origin=_own_origin(),
    )
    answer = ok({"authorization_url": started.authorization_url})
    return responses.bind(answer, started)


@bp.get("/callback")
@anonymous_route()
@query_args(CallbackQuery)
@redirects(name="finishExternalLogin")
def callback(query: dict[str, Any]) -> ResponseReturnValue:
    """Finish a sign-in: the provider sends the browser here, and it is redirected to the site.

    Once signed in, the browser goes to its `return_path`, or to `/force-password-change`. Otherwise
    it goes to `/login`, whose query has `mfa=required` with `flow`, `expires_in`, `methods` and
    `return_path`; `external_auth=email_required` with `flow` and `return_path`; or
    `external_auth=error` with the `code` of a refusal. HEAD does nothing.
    """
    return _finish_callback(query)


@bp.get("/<kind>/<provider>/callback")
@_deprecated
@anonymous_route()
@query_args(CallbackQuery)
@redirects(name="finishExternalLoginAtProvider")
def legacy_callback(kind: str, provider: str, query: dict[str, Any]) -> ResponseReturnValue:
    """Finish a sign-in at the address of its provider; will be removed in 1.0.0."""
    return _finish_callback(query, route=(kind, provider))


@bp.post("/email-verification/start")
@anonymous_route()
@json_body(RequestExternalEmailSchema)
@answers(
    MessageData(),
    errors=(
        *origin.SOURCE_ERRORS,
        FlowTokenInvalid,
        EmailInvalid,
        ContactVerificationInvalid,
        ProviderDisabled,
        PolicyDenied,
        AccountDisabled,
        PendingActivation,
        RegistrationDisabled,
    ),
    name="requestExternalEmail",
)
def request_mail(body: dict[str, Any]) -> ResponseReturnValue:
    """Send a mail, once, to prove the mailbox of the identity that waits under `flow_token`."""
    origin.check_source()
    mailbox.request_verification_mail(runtime(), **body)
    return ok({"message": MAIL_SENT})


@bp.get("/email-verification/confirm")
@anonymous_route()
@query_args(ConfirmMailboxQuery)
@redirects(name="confirmExternalEmail")
def confirm_mailbox(query: dict[str, Any]) -> ResponseReturnValue:
    """Sign in by the link of a mail; the browser is redirected as by the callback.

    `external_auth` of `/login` can also be `email_verification_missing`,
    `email_verification_invalid` and `email_verification_expired`. HEAD does not use up the link.
    """
    rt = runtime()
    return _redirect_to_outcome(lambda: mailbox.confirm(rt, query["token"], client()))


@bp.post("/password-link")
@minimum_duration
@anonymous_route(source_check=True)
@_password_login_required
@json_body(LinkExternalIdentitySchema)
@answers(
    LOGIN_STEP,
    errors=(
        PasswordLoginDisabled,
        FlowTokenInvalid,
        PasswordMissing,
        ContactVerificationInvalid,
        ProviderDisabled,
        CredentialsFailed,
        AccountDisabled,
        PendingActivation,
        PolicyDenied,
        LinkConflict,
    ),
    name="linkExternalIdentity",
)
def link_by_password(body: dict[str, Any]) -> LoginOutcome | MfaRequired:
    """Link the identity that waits under `flow_token` to an account by its password and sign in."""
    outcome = password_link.link_by_password(runtime(), **body, client=client())
    cookies.sign_in(outcome.pair)
    return outcome


@bp.get("/links")
@login_required()
@answers(fields.List(fields.Nested(ExternalLinkItem)), name="listExternalLinks")
def list_links(principal: Principal) -> ResponseReturnValue:
    """List the identities that can sign in to the account, the most recently used first."""
    found = links.list_links(runtime(), principal.user_id)
    return ok([responses.link(link) for link in found])


@bp.delete("/links/<link_id>")
@login_required()
@answers(errors=(LinkNotFound, LastWayIn), name="removeExternalLink")
def remove_link(principal: Principal, link_id: str) -> ResponseReturnValue:
    """Remove a link, unless it is the only way to sign in; sessions stay open."""
    links.remove(runtime(), principal, link_id, client=client())
    return ok()


def _own_origin() -> str | None:
    """Return the origin under which the caller reached the service; None if unknown."""
    try:
        return origin.own_origin()
    except BadRequest:
        return None


def _finish_callback(query: dict[str, Any], route: tuple[str, str] | None = None) -> Response:
    rt, state = runtime(), query["state"]
    callback_request = CallbackRequest(
        state=state,
        binding=cookies.presented(responses.cookie_name(state)) if state else None,
        code=query["code"],
        error=query["error"],
        issuer=query["iss"],
    )
    response = _redirect_to_outcome(
        lambda: service.finish(rt, callback_request, client(), route=route)
    )
    return responses.unbind(response, state) if state and request.method != "HEAD" else response


def _redirect_to_outcome(finish: Callable[[], SignInResult | MailLinkFailure]) -> Response:
    """Redirect a browser to where a sign-in led, or to the page that explains why it failed.

    A person is looking at the browser, to whom a JSON envelope would mean nothing.
    """
    rt = runtime()
    if request.method == "HEAD":
        return to_page(rt, LOGIN_PAGE, {})
    try:
        return responses.to_frontend(rt, finish())
    except Exception as error:
        return responses.to_failure(rt, error)
