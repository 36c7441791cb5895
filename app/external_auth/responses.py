"""JSON forms of providers and links, and the redirects after a sign-in (spec 03 §3-5, §9)."""

import logging
from dataclasses import asdict
from http import HTTPStatus
from typing import Any

from flask import Response

from app.core.error_codes import ErrorCode
from app.core.runtime import Runtime
from app.core.secret_box import REDACTED
from app.core.tokens import digest
from app.external_auth.drivers.interface import ProviderKind, TestResult
from app.external_auth.drivers.microsoft import DEFAULT_TENANT, tenant_of
from app.external_auth.kinds import TRAITS
from app.external_auth.mailbox import MailLinkFailure
from app.external_auth.models import Link, Provider
from app.external_auth.provider_rules import CLAIMS, FLAGS
from app.external_auth.service import PREFIX, EmailRequired, SignInResult, StartedSignIn
from app.login.service import MfaRequired
from app.web import cookies
from app.web.errors import as_refusal, note_failure, status_of
from app.web.redirects import LOGIN_PAGE, to_page
from app.web.schema import timestamp

# A page of the frontend.
PASSWORD_CHANGE_PAGE = "/force-password-change"
BINDING_COOKIE = "service_external_auth_"

log = logging.getLogger(__name__)


def public_provider(provider: Provider) -> dict[str, Any]:
    """Return the part of a provider that anonymous clients see."""
    return {
        "key": provider.key,
        "kind": provider.provider_kind,
        "display_name": provider.display_name,
        "icon_url": provider.icon_url,
    }


def provider(found: Provider) -> dict[str, Any]:
    """Return the whole provider except its secret (spec 03 §9.1)."""
    traits = TRAITS[found.provider_kind]
    has_secret = found.client_secret is not None
    # Stored URLs of a dedicated kind are a test hook, except a Microsoft issuer that names no
    # tenant.
    is_shown = not traits.is_dedicated
    tenant = _tenant(found) if traits.has_tenant else None
    is_issuer_shown = is_shown or (traits.has_tenant and tenant is None)
    return {
        "id": found.id,
        "key": found.key,
        "provider_kind": found.provider_kind,
        "protocol": traits.protocol,
        "display_name": found.display_name,
        "icon_url": found.icon_url,
        "options": {"microsoft": {"tenant": tenant}} if tenant else found.stored_options,
        "issuer_url": found.issuer_url if is_issuer_shown else None,
        "authorization_url": found.authorization_url if is_shown else None,
        "token_url": found.token_url if is_shown else None,
        "userinfo_url": found.userinfo_url if is_shown else None,
        "client_id": found.client_id,
        "client_secret": REDACTED if has_secret else None,
        "client_secret_configured": has_secret,
        "scopes": found.scopes,
        **{name: getattr(found, name) for name in (*FLAGS, *CLAIMS)},
        "allowed_domains": list(found.domains),
        "created_at": timestamp(found.created_at),
        "updated_at": timestamp(found.updated_at),
    }


def kind(found: ProviderKind) -> dict[str, Any]:
    """Return what can be configured for a kind (spec 03 §9.2)."""
    traits = TRAITS[found]
    return {
        "kind": found,
        "protocol": traits.protocol,
        "display_name": found.display_name,
        "description": traits.description,
        "default_scopes": found.default_scopes,
        "create_defaults": {
            "display_name": traits.default_name,
            "options": {"microsoft": {"tenant": DEFAULT_TENANT}} if traits.has_tenant else {},
            "scopes": found.default_scopes,
            "enabled": True,
            "auto_provision_enabled": False,
            "auto_link_verified_email_enabled": False,
            "require_email_verified": traits.requires_verified_email_by_default,
        },
        "issuer_url_supported": traits.supports_issuer,
        "issuer_url_required": traits.requires_issuer,
        "manual_endpoint_configuration_supported": traits.supports_manual_endpoints,
        "authorization_url_required": traits.supports_manual_endpoints,
        "token_url_required": traits.supports_manual_endpoints,
        "userinfo_url_required": traits.supports_manual_endpoints,
        "supports_discovery": traits.has_discovery,
        "supports_pkce": True,
        "supports_email_verified_claim": traits.reports_email_verified,
    }


def test_result(result: TestResult) -> dict[str, Any]:
    """Return the result of a provider test (spec 03 §9.3)."""
    return {**asdict(result), "checks": [asdict(check) for check in result.checks]}


def link(found: Link) -> dict[str, Any]:
    """Return a link as its owner sees it (spec 03 §8.4)."""
    return {
        **found._asdict(),
        "created_at": timestamp(found.created_at),
        "updated_at": timestamp(found.updated_at),
        "last_login_at": timestamp(found.last_login_at),
    }


def bind(response: Response, started: StartedSignIn) -> Response:
    """Set the cookie that binds a sign-in to the browser that began it."""
    cookies.put(response, cookie_name(started.state), started.binding, started.seconds, PREFIX)
    return response


def unbind(response: Response, state: str) -> Response:
    """Delete the cookie of one sign-in; those of others stay."""
    cookies.put(response, cookie_name(state), "", 0, PREFIX)
    return response


def cookie_name(state: str) -> str:
    """Return the name of a sign-in's cookie: one each, so that one browser can have several."""
    return BINDING_COOKIE + digest(state)


def to_frontend(rt: Runtime, result: SignInResult | MailLinkFailure) -> Response:
    """Redirect to where a sign-in leads, and set the session cookies if there is a session."""
    if isinstance(result, MailLinkFailure):
        note_failure(result.value)
        return to_page(rt, LOGIN_PAGE, {"external_auth": result.value})
    outcome, path = result.outcome, result.return_path
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
        return to_page(rt, LOGIN_PAGE, {**told, "return_path": path})
    page = PASSWORD_CHANGE_PAGE if outcome.is_limited else path
    return cookies.write(to_page(rt, page, {}), outcome.pair)


def to_failure(rt: Runtime, error: Exception) -> Response:
    """Redirect to the login page with the code of a refusal; internal errors get no code."""
    told = {"external_auth": "error"}
    refusal = as_refusal(error)
    code = refusal.code if refusal else ErrorCode.INTERNAL_SERVER_ERROR
    log.warning("an external sign-in failed: %s (%s)", type(error).__name__, code)
    note_failure(code.value)
    if refusal is not None and status_of(type(refusal)) < HTTPStatus.INTERNAL_SERVER_ERROR:
        told["code"] = code.value
    return to_page(rt, LOGIN_PAGE, told)


def _tenant(found: Provider) -> str | None:
    """Return a Microsoft provider's tenant: the stored one, or the one its stored issuer names."""
    return found.tenant or tenant_of(found.issuer_url or "")
