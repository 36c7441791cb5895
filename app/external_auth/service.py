"""Use cases of a sign-in by a provider: sending the browser there, and its return (spec 03 §4-6).

No transaction is open during a request to a provider.
"""

from dataclasses import dataclass, field
from datetime import timedelta

from app.core.client import Client
from app.core.runtime import Runtime
from app.external_auth import (
    drivers,
    flows,
    kinds,
    linking,
    pending,
    provider_queries,
    provider_rules,
    providers,
    resolution,
    return_path,
)
from app.external_auth.drivers.interface import Callback, ExternalProfile, ProviderKind
from app.external_auth.errors import (
    CallbackAddressMissing,
    ProviderDisabled,
    SignInFailed,
)
from app.external_auth.flows import SignIn
from app.external_auth.linking import ResolvedSignIn
from app.external_auth.models import Provider
from app.external_auth.provisioning import RegistrationSettings
from app.login.service import LoginOutcome, MfaRequired
from app.settings import keys
from app.web import site

PREFIX = "/api/v1/auth/external-auth"
UNIFIED_CALLBACK = f"{PREFIX}/callback"


@dataclass(frozen=True)
class StartedSignIn:
    """Where to send the browser, and the cookie that binds the sign-in to it."""

    authorization_url: str = field(repr=False)
    state: str = field(repr=False)
    binding: str = field(repr=False)
    seconds: int


@dataclass(frozen=True)
class CallbackRequest:
    """What a browser returned with; None for each value that is missing.

    `binding` is the cookie that belongs to `state`. `issuer` is the parameter `iss` (RFC 9207).
    """

    state: str | None = field(repr=False)
    binding: str | None = field(repr=False)
    code: str | None = field(repr=False)
    error: str | None
    issuer: str | None


@dataclass(frozen=True)
class EmailRequired:
    """There is no account yet: a mailbox or a password has to show whose identity it is."""

    flow_token: str = field(repr=False)


@dataclass(frozen=True)
class SignInResult:
    """The outcome of a sign-in, and the path that was requested at its start."""

    outcome: LoginOutcome | MfaRequired | EmailRequired
    return_path: str


def start(
    rt: Runtime, *, kind: str, provider: str, wanted_path: str | None, own_origin: str | None
) -> StartedSignIn:
    """Begin a sign-in.

    `own_origin` is the origin under which the caller reached the service, None if unknown.
    Raises: the first that applies of KindUnknown, ProviderKeyInvalid, ProviderNotFound,
    ProviderDisabled, ReturnPathInvalid, CallbackAddressMissing, DiscoveryFailed,
    ProviderMisconfigured. Source: spec 03 §4.
    """
    provider_kind, key = kinds.named(kind), provider_rules.provider_key(provider)
    found = providers.get_cached(rt, provider_kind, key)
    if not found.enabled:
        raise ProviderDisabled
    path = return_path.checked(wanted_path)
    redirect_uri = _redirect_uri(rt, found, own_origin)
    driver = drivers.of(rt, provider_kind)
    authorization = driver.authorize(providers.config_of(rt, found), redirect_uri)
    seconds = rt.settings.get(keys.EXTERNAL_FLOW_TTL_SECONDS)
    sign_in = SignIn(
        provider_id=found.id,
        provider_created_at=found.created_at.isoformat(),
        redirect_uri=redirect_uri,
        return_path=path,
        nonce=authorization.nonce,
        pkce_verifier=authorization.pkce_verifier,
    )
    state = authorization.state
    binding = flows.open_sign_in(rt, state, sign_in, timedelta(seconds=seconds))
    return StartedSignIn(authorization.url, state, binding, seconds)


def finish(
    rt: Runtime, request: CallbackRequest, client: Client, *, route: tuple[str, str] | None = None
) -> SignInResult:
    """Complete the sign-in of a browser that has returned from its provider.

    `route` is kind and provider from the legacy route's path; None on the unified route.
    Raises: KindUnknown, which does not consume the sign-in; SignInFailed, ProviderKeyInvalid,
    ProviderDisabled, ProviderRejected, DiscoveryFailed, ProviderMisconfigured, what `resolve` and
    `complete_login` raise. Source: spec 03 §5, §6.
    """
    route_kind = kinds.named(route[0]) if route else None
    sign_in = _consume_sign_in(rt, request)
    if request.error is not None or not request.code:
        raise SignInFailed
    provider = _provider_of(rt, sign_in)
    if route_kind and route and not _is_at(provider, route_kind, route[1]):
        raise SignInFailed
    if not provider.enabled:
        raise ProviderDisabled
    if not flows.claim_code(rt, request.code, provider.id):
        raise SignInFailed
    callback = Callback(
        code=request.code,
        redirect_uri=sign_in.redirect_uri,
        nonce=sign_in.nonce,
        pkce_verifier=sign_in.pkce_verifier,
        issuer=request.issuer,
    )
    driver = drivers.of(rt, provider.provider_kind)
    profile = driver.identify(providers.config_of(rt, provider), callback)
    resolved = _resolve_or_open_pending(rt, provider, profile, sign_in.return_path, client)
    if isinstance(resolved, EmailRequired):
        return SignInResult(resolved, sign_in.return_path)
    return SignInResult(linking.complete(rt, resolved, client), sign_in.return_path)


def _redirect_uri(rt: Runtime, provider: Provider, own_origin: str | None) -> str:
    """Return where the provider sends the browser back to: always a URL of the site.

    Raises: CallbackAddressMissing.
    """
    origins = rt.settings.get(site.PUBLIC_SITE_URL)
    if not origins:
        raise CallbackAddressMissing
    return (own_origin if own_origin in origins else origins[0]) + _callback_path(rt, provider)


def callback_addresses(rt: Runtime, provider: Provider) -> list[str]:
    """Return the callback URLs to register at a provider, in the order of the site's origins."""
    path = _callback_path(rt, provider)
    return [origin + path for origin in rt.settings.get(site.PUBLIC_SITE_URL)]


def _callback_path(rt: Runtime, provider: Provider) -> str:
    if rt.config.external_auth_legacy_callback:
        return f"{PREFIX}/{provider.provider_kind}/{provider.key}/callback"
    return UNIFIED_CALLBACK


def _consume_sign_in(rt: Runtime, request: CallbackRequest) -> SignIn:
    if not request.state or not request.binding:
        raise SignInFailed
    sign_in = flows.consume(rt, request.state, request.binding)
    if sign_in is None:
        raise SignInFailed
    return sign_in


def _provider_of(rt: Runtime, sign_in: SignIn) -> Provider:
    provider = provider_queries.look_up(rt.database, sign_in.provider_id)
    if provider is None or provider.created_at.isoformat() != sign_in.provider_created_at:
        raise SignInFailed
    return provider


def _is_at(provider: Provider, kind: ProviderKind, typed_key: str) -> bool:
    """Return whether a legacy route names the provider of the sign-in.

    Raises: ProviderKeyInvalid.
    """
    return (provider.provider_kind, provider.key) == (kind, provider_rules.provider_key(typed_key))


def _resolve_or_open_pending(
    rt: Runtime, provider: Provider, profile: ExternalProfile, path: str, client: Client
) -> ResolvedSignIn | EmailRequired:
    settings = RegistrationSettings.of(rt)
    with rt.transaction() as session:
        provider = linking.lock_identity(session, provider.id, profile)
        resolved = resolution.resolve(rt, session, provider, profile, settings, client)
        if resolved is not None:
            return resolved
        return EmailRequired(pending.open_pending(rt, session, provider, profile, path))
