"""/auth/external-auth."""

import logging
from collections.abc import Callable, Mapping
from functools import wraps
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from flask import Blueprint, Response, after_this_request, request
from marshmallow import fields

from app.contact_verification import tokens
from app.core.access import Principal
from app.core.errors import BadRequest, ErrorCode
from app.core.runtime import Runtime
from app.crypto.tokens import digest
from app.external_auth import errors, links
from app.external_auth.models import Identity, Provider
from app.external_auth.providers.service import list_enabled
from app.external_auth.schemas import (
    AnswerMailboxQuery,
    CallbackQuery,
    ConfirmMailboxQuery,
    ExternalLinkItem,
    LinkExternalIdentitySchema,
    PublicProviderItem,
    RequestExternalEmailSchema,
    StartedExternalLoginData,
    StartExternalLoginSchema,
)
from app.external_auth.sign_in import pending, service
from app.external_auth.sign_in.pending import MailAnswer, MailLinkFailure, Question
from app.external_auth.sign_in.service import (
    PREFIX,
    UNIFIED_CALLBACK,
    EmailRequired,
    Served,
    SignInResult,
    StartedSignIn,
)
from app.external_auth.sign_in.signed_in import Intent
from app.login import sign_in_methods
from app.login.completion import LoginOutcome, MfaRequired
from app.login.schemas import LOGIN_STEP
from app.pages.registry import JOIN
from app.pages.views import question
from app.web import cookies, origin
from app.web.errors import as_refusal, note_failure, status_of
from app.web.guards import (
    SIGNED_IN_ERRORS,
    anonymous_route,
    find_principal,
    login_required,
    minimum_duration,
    signed_in,
)
from app.web.operation import View, answers, operation_of, redirects
from app.web.peer import client
from app.web.request import json_body, query_args
from app.web.runtime import runtime
from app.web.schema import MessageData
from app.web.site import LOGIN_PAGE, to_page

# A page of the frontend.
PASSWORD_CHANGE_PAGE = "/force-password-change"
BINDING_COOKIE = "service_external_auth_"
DONE = {Intent.LINK: "linked", Intent.CONFIRM: "confirmed"}
MAIL_SENT = "external auth email verification email sent"
# RFC 9745: the legacy route is deprecated since 2026-11-21, UTC.
DEPRECATED_SINCE = "@1795219200"

log = logging.getLogger(__name__)

bp = Blueprint("external_auth", __name__, url_prefix=PREFIX)


def _deprecated(view: View) -> View:
    """Mark every response of a route as deprecated, and name its successor."""

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
    """Refuse, before the body is read, while password logins are disabled."""

    @wraps(view)
    def check_and_call(**arguments: Any) -> Any:
        sign_in_methods.require_password_login(runtime())
        return view(**arguments)

    return check_and_call


@bp.get("/providers")
@anonymous_route()
@answers(fields.List(fields.Nested(PublicProviderItem)), name="listExternalProviders")
def list_providers() -> list[Provider]:
    """List the providers that can be used to sign in, by display name."""
    return list_enabled(runtime())


@bp.post("/<kind>/<provider>/start")
@anonymous_route()
@json_body(StartExternalLoginSchema)
@answers(
    StartedExternalLoginData(),
    errors=(*SIGNED_IN_ERRORS, *errors.START),
    name="startExternalLogin",
)
def start(
    kind: str, provider: str, return_path: str | None, intent: Intent, remember: bool
) -> StartedSignIn:
    """Begin a sign-in: send the browser to `authorization_url`; it comes back to the callback.

    A cookie ties the sign-in to this browser. `return_path` is the path of this site to which the
    browser is sent in the end. Whoever is signed in can `link` an identity to the account instead,
    or `confirm` the session, at a provider that says when somebody signed in there.
    """
    principal = None
    if intent is Intent.SIGN_IN:
        origin.check_source()
    else:
        principal = signed_in(confirmation="if_set" if intent is Intent.LINK else None)
    started = service.start(
        runtime(),
        kind=kind,
        provider=provider,
        wanted_path=return_path,
        own_origin=_own_origin(),
        intent=intent,
        principal=principal,
        remember=remember,
    )
    _set_binding(started.state, started.binding, started.seconds)
    return started


@bp.get("/callback")
@anonymous_route()
@query_args(CallbackQuery)
@redirects(name="finishExternalLogin")
def callback(**returned: str | None) -> Response:
    """Finish a sign-in: the provider sends the browser here, and it is redirected to the site.

    Once signed in, the browser goes to its `return_path`, or to `/force-password-change`. Otherwise
    it goes to `/login`, whose query has `mfa=required` with `flow`, `expires_in`, `methods`,
    `return_path` and, if browsers can be remembered, `remember_device_secs`;
    `external_auth=email_required` with `flow` and `return_path`; or `external_auth=error` with the
    `code` of a refusal. Whoever came to link or to confirm goes to `return_path`, with
    `external_auth` as `linked`, `confirmed` or `error`; to `/login` from any browser that is not
    signed in to the session that began it. HEAD does nothing.
    """
    return _finish_callback(returned)


@bp.get("/<kind>/<provider>/callback")
@_deprecated
@anonymous_route()
@query_args(CallbackQuery)
@redirects(name="finishExternalLoginAtProvider")
def legacy_callback(kind: str, provider: str, **returned: str | None) -> Response:
    """Finish a sign-in at the address of its provider; will be removed in 1.0.0."""
    return _finish_callback(returned, route=(kind, provider))


@bp.post("/email-verification/start")
@anonymous_route()
@json_body(RequestExternalEmailSchema)
@answers(
    MessageData(),
    errors=(*origin.SOURCE_ERRORS, *errors.REQUEST_MAIL),
    name="requestExternalEmail",
)
def request_mail(flow_token: str, email: str) -> dict[str, str]:
    """Send a mail, once, to prove the mailbox of the identity that waits under `flow_token`."""
    origin.check_source()
    rt = runtime()
    life = max(int(pending.LIFE.total_seconds()), tokens.longest_life(rt))
    browser = cookies.keep_browser_id(life)
    pending.request_verification_mail(rt, flow_token=flow_token, email=email, browser=browser)
    return {"message": MAIL_SENT}


@bp.get("/email-verification/confirm")
@anonymous_route()
@query_args(ConfirmMailboxQuery)
@redirects(name="confirmExternalEmail", may_be_page=True)
def open_mailed_link(token: str) -> Response:
    """Open a mailed link: it signs in the browser that asked for it, redirected as by the callback.

    Any other browser gets a page that says whose identity would be joined to which account, with a
    button that posts to this address; nothing is used up. `external_auth` of `/login` can also be
    `email_verification_missing`, `email_verification_invalid` and `email_verification_expired`.
    HEAD does not use up the link.
    """
    rt = runtime()
    browser, wish = cookies.browser_digest(), cookies.wish()
    return _redirect_to_outcome(lambda: pending.open_link(rt, token, client(), browser, wish))


@bp.post("/email-verification/confirm")
@anonymous_route(source_check=True)
@query_args(AnswerMailboxQuery)
@redirects(status=HTTPStatus.SEE_OTHER.value, name="answerExternalEmail")
def answer_mailed_link(token: str, answer: MailAnswer) -> Response:
    """Answer the page of a mailed link: `yes` signs in, redirected as by the callback.

    `no` voids the link, and `external_auth` of `/login` is `email_verification_declined`.
    """
    rt = runtime()
    if answer is MailAnswer.NO:
        response = _redirect_to_outcome(lambda: pending.decline(rt, token))
    else:
        wish = cookies.wish()
        response = _redirect_to_outcome(lambda: pending.confirm_mailbox(rt, token, client(), wish))
    response.status_code = HTTPStatus.SEE_OTHER
    return response


@bp.post("/password-link")
@minimum_duration
@anonymous_route(source_check=True)
@_password_login_required
@json_body(LinkExternalIdentitySchema)
@answers(
    LOGIN_STEP,
    errors=errors.LINK_BY_PASSWORD,
    name="linkExternalIdentity",
)
def link_by_password(flow_token: str, identifier: str, password: str) -> LoginOutcome | MfaRequired:
    """Link the identity that waits under `flow_token` to an account by its password and sign in."""
    outcome = pending.link_by_password(
        runtime(),
        flow_token=flow_token,
        identifier=identifier,
        password=password,
        client=client(),
        wish=cookies.wish(),
    )
    cookies.sign_in(outcome.pair)
    return outcome


@bp.get("/links")
@login_required()
@answers(fields.List(fields.Nested(ExternalLinkItem)), name="listExternalLinks")
def list_links(principal: Principal) -> list[Identity]:
    """List the identities that can sign in to the account, the most recently used first."""
    return links.list_links(runtime(), principal.user_id)


@bp.delete("/links/<link_id>")
@login_required(confirmation="if_set")
@answers(errors=errors.REMOVE_LINK, name="removeExternalLink")
def remove_link(principal: Principal, link_id: str) -> None:
    """Remove a link, unless it is the only way to sign in; sessions stay open."""
    links.remove(runtime(), principal, link_id, client=client())


def _own_origin() -> str | None:
    """Return the origin under which the caller reached the service; None if unknown."""
    try:
        return origin.own_origin()
    except BadRequest:
        return None


def _cookie_name(state: str) -> str:
    """Return the name of a sign-in's cookie: one each, so that one browser can have several."""
    return BINDING_COOKIE + digest(state)


def _set_binding(state: str, value: str, seconds: int) -> None:
    """Set a sign-in's cookie with the answer to this request; those of others stay."""

    @after_this_request
    def put(response: Response) -> Response:
        cookies.put(response, _cookie_name(state), value, seconds, PREFIX)
        return response


def _finish_callback(
    returned: Mapping[str, str | None], route: tuple[str, str] | None = None
) -> Response:
    rt, state = runtime(), returned["state"]
    if state and request.method != "HEAD":
        _set_binding(state, "", 0)
    binding = request.cookies.get(_cookie_name(state)) if state else None
    return _redirect_to_outcome(
        lambda: service.finish(
            rt,
            returned,
            binding,
            client(),
            cookies.wish(),
            find_principal=find_principal,
            route=route,
        )
    )


def _redirect_to_outcome(
    finish: Callable[[], SignInResult | MailLinkFailure | Question],
) -> Response:
    """Redirect a browser to where a sign-in led, or to the page that explains why it failed.

    A person is looking at the browser, to whom a JSON envelope would mean nothing.
    """
    rt = runtime()
    if request.method == "HEAD":
        return to_page(rt, LOGIN_PAGE, {})
    try:
        return _to_frontend(rt, finish())
    except Exception as error:
        return _to_failure(rt, error)


def _to_frontend(rt: Runtime, result: SignInResult | MailLinkFailure | Question) -> Response:
    """Redirect to where a sign-in leads, and set the session cookies if there is a session."""
    if isinstance(result, Question):
        return question(JOIN, asked=result, path=f"?{urlencode({'token': request.args['token']})}")
    if isinstance(result, MailLinkFailure):
        note_failure(result.value)
        return to_page(rt, LOGIN_PAGE, {"external_auth": result.value})
    outcome, path = result
    if isinstance(outcome, Served):
        if outcome.error:
            return _to_failure(rt, outcome.error, path)
        return to_page(rt, path, {"external_auth": DONE[outcome.intent]})
    if isinstance(outcome, EmailRequired):
        told = {"external_auth": "email_required", "flow": outcome.flow_token}
        return to_page(rt, LOGIN_PAGE, {**told, "return_path": path})
    if isinstance(outcome, MfaRequired):
        told = {
            "mfa": "required",
            "flow": outcome.flow_token,
            "expires_in": str(outcome.expires_in),
            "methods": ",".join(outcome.methods),
        }
        if outcome.remember_device_seconds:
            told["remember_device_secs"] = str(outcome.remember_device_seconds)
        return to_page(rt, LOGIN_PAGE, {**told, "return_path": path})
    page = PASSWORD_CHANGE_PAGE if outcome.is_limited else path
    return cookies.write(to_page(rt, page, {}), outcome.pair)


def _to_failure(rt: Runtime, error: Exception, page: str = LOGIN_PAGE) -> Response:
    """Redirect to a page with the code of a refusal; internal errors get no code."""
    told = {"external_auth": "error"}
    refusal = as_refusal(error)
    code = refusal.code if refusal else ErrorCode.INTERNAL_SERVER_ERROR
    log.warning("an external sign-in failed: %s (%s)", type(error).__name__, code)
    note_failure(code.value)
    if refusal is not None and status_of(type(refusal)) < HTTPStatus.INTERNAL_SERVER_ERROR:
        told["code"] = code.value
    return to_page(rt, page, told)
