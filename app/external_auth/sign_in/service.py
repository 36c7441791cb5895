"""Use cases of a sign-in by a provider: sending the browser there, and its return.

No transaction is open during a request to a provider. In between, for minutes, a sign-in is in
Redis, bound to the browser that began it: its key combines the digests of `state` and of the secret
in that browser's cookie, so a single GETDEL consumes it, once, for whoever presents both, and
nobody else can even name the key (RFC 9700, section 4.7). The stored value, with the nonce and the
PKCE verifier in it, is encrypted and bound to that key.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial

from app.core.access import Principal, SessionUserMismatch
from app.core.client import Client, SignInWish
from app.core.runtime import Runtime
from app.crypto.secret_box import SecretUnreadable
from app.crypto.tokens import digest, random_token
from app.external_auth import queries
from app.external_auth.drivers.driver import Callback, ExternalProfile, callback_refusal
from app.external_auth.errors import (
    CallbackAddressMissing,
    ProviderDisabled,
    ProviderNotFound,
    ReturnPathInvalid,
    SignInFailed,
)
from app.external_auth.models import Provider, ProviderKind
from app.external_auth.providers.service import checked_key, driver_of, named_kind
from app.external_auth.sign_in import linking, pending, signed_in
from app.external_auth.sign_in.linking import Arrival
from app.external_auth.sign_in.new_accounts import RegistrationSettings
from app.external_auth.sign_in.signed_in import Intent
from app.login.completion import LoginOutcome, MfaRequired
from app.settings import keys
from app.store import flow_store
from app.web import site

PREFIX = "/api/v1/auth/external-auth"
UNIFIED_CALLBACK = f"{PREFIX}/callback"
MAX_PATH_BYTES = 2048
# Longer than any code is valid; RFC 6749 §4.1.2 recommends ten minutes at most.
CODE_TRACKING_TTL = timedelta(hours=1)

# Shorter codes may collide between providers by chance; none so short is meant to be secret.
MIN_TRACKED_CODE_LENGTH = 16

# RFC 6749, appendix A.11.
_CODE = re.compile(r"[\x20-\x7e]+")


@dataclass(frozen=True)
class StartedSignIn:
    """Where to send the browser, and the cookie that binds the sign-in to it."""

    authorization_url: str = field(repr=False)
    state: str = field(repr=False)
    binding: str = field(repr=False)
    seconds: int


@dataclass(frozen=True)
class SignIn:
    """The state of a sign-in while the browser is at the provider.

    `session_id` is the session that began it; None for an ordinary sign-in, which needs none.
    `remember` is false if the session that it leads to ends with the browser's window.
    """

    provider_id: int
    redirect_uri: str
    return_path: str
    nonce: str | None = field(repr=False)
    pkce_verifier: str = field(repr=False)
    intent: str = Intent.SIGN_IN
    session_id: str | None = None
    remember: bool | None = None


@dataclass(frozen=True)
class EmailRequired:
    """There is no account yet: a mailbox or a password has to show whose identity it is."""

    flow_token: str = field(repr=False)


@dataclass(frozen=True)
class Served:
    """What a signed-in person wanted is done, or not because of `error`."""

    intent: Intent
    error: Exception | None = None


# The outcome of a sign-in, and the path that was requested at its start.
SignInResult = tuple[LoginOutcome | MfaRequired | EmailRequired | Served, str]


def start(
    rt: Runtime,
    *,
    kind: str,
    provider: str,
    wanted_path: str | None,
    own_origin: str | None,
    intent: Intent = Intent.SIGN_IN,
    principal: Principal | None = None,
    remember: bool = True,
) -> StartedSignIn:
    """Begin a sign-in, or what the `principal` of a session is sent to the provider for.

    `own_origin` is the origin under which the caller reached the service, None if unknown.
    Raises: the first that applies of KindUnknown, ProviderKeyInvalid, ProviderNotFound,
    ProviderDisabled, ReturnPathInvalid, CallbackAddressMissing, MethodNotOffered, DiscoveryFailed,
    ProviderMisconfigured.
    """
    provider_kind, key = named_kind(kind), checked_key(provider)
    with rt.reading() as session:
        found = queries.find_provider_by_key(session, provider_kind, key)
    if found is None:
        raise ProviderNotFound
    if not found.enabled:
        raise ProviderDisabled
    path = checked_path(wanted_path)
    redirect_uri = _redirect_uri(rt, found, own_origin)
    if principal and intent is Intent.CONFIRM:
        signed_in.require_confirmable(rt, principal, found)
    authorization = driver_of(rt, found).authorize(redirect_uri, anew=intent is Intent.CONFIRM)
    seconds = rt.settings.get(keys.EXTERNAL_FLOW_TTL_SECONDS)
    sign_in = SignIn(
        provider_id=found.id,
        redirect_uri=redirect_uri,
        return_path=path,
        nonce=authorization.nonce,
        pkce_verifier=authorization.pkce_verifier,
        intent=intent,
        session_id=principal.session_id if principal else None,
        remember=None if remember else False,
    )
    state = authorization.state
    binding = open_sign_in(rt, state, sign_in, timedelta(seconds=seconds))
    return StartedSignIn(authorization.url, state, binding, seconds)


def finish(
    rt: Runtime,
    returned: Mapping[str, str | None],
    binding: str | None,
    client: Client,
    wish: SignInWish,
    *,
    find_principal: Callable[[], Principal | None],
    route: tuple[str, str] | None = None,
) -> SignInResult:
    """Complete the sign-in of a browser that has returned from its provider.

    `returned` are the parameters of the callback, `binding` is the cookie of its state,
    `find_principal` says who is signed in to the browser. `route` is kind and provider from the
    legacy route's path; None on the unified route.
    Raises: KindUnknown, which does not consume the sign-in; SignInFailed, SessionUserMismatch,
    ProviderKeyInvalid, ProviderDisabled, ProviderRejected, DiscoveryFailed, ProviderMisconfigured,
    what `resolve` and `complete_login` raise.
    """
    route_kind = named_kind(route[0]) if route else None
    state = returned["state"]
    sign_in = consume(rt, state, binding) if state and binding else None
    if sign_in is None:
        raise SignInFailed
    named = (route_kind, route[1]) if route_kind and route else None
    if sign_in.session_id is None:
        wish = replace(wish, remember=sign_in.remember)
        return _sign_in(rt, sign_in, *_identify(rt, sign_in, returned, named), client, wish)
    principal = find_principal()
    if principal is None or principal.session_id != sign_in.session_id:
        raise SessionUserMismatch
    intent, error = Intent(sign_in.intent), None
    serve = signed_in.confirm if intent is Intent.CONFIRM else signed_in.link
    try:
        serve(rt, principal, *_identify(rt, sign_in, returned, named), client)
    except Exception as failure:
        error = failure
    return Served(intent, error), sign_in.return_path


def _identify(
    rt: Runtime,
    sign_in: SignIn,
    returned: Mapping[str, str | None],
    named: tuple[ProviderKind, str] | None,
) -> tuple[Provider, ExternalProfile]:
    """Return the provider of a sign-in, and whom it vouches for.

    `named` are kind and key in the legacy route's path.
    Raises: SignInFailed, ProviderKeyInvalid, ProviderDisabled, ProviderRejected, DiscoveryFailed,
    ProviderMisconfigured.
    """
    with rt.reading() as session:
        provider = session.get(Provider, sign_in.provider_id)
    if provider is None:
        raise SignInFailed
    if returned["error"] is not None:
        raise callback_refusal(provider, returned["error"])
    code = returned["code"]
    own = (provider.provider_kind, provider.key)
    if not code or (named and own != (named[0], checked_key(named[1]))):
        raise SignInFailed
    if not provider.enabled:
        raise ProviderDisabled
    if not claim_code(rt, code, provider.id):
        raise SignInFailed
    callback = Callback(
        code=code,
        redirect_uri=sign_in.redirect_uri,
        nonce=sign_in.nonce,
        pkce_verifier=sign_in.pkce_verifier,
        issuer=returned["iss"],
        must_be_recent=sign_in.intent == Intent.CONFIRM,
    )
    return provider, driver_of(rt, provider).identify(callback)


def _sign_in(
    rt: Runtime,
    sign_in: SignIn,
    provider: Provider,
    profile: ExternalProfile,
    client: Client,
    wish: SignInWish,
) -> SignInResult:
    settings, path = RegistrationSettings.of(rt), sign_in.return_path
    with rt.transaction() as session:
        provider = linking.lock_identity(session, provider.id, profile)
        arrival = Arrival(provider, profile, client, wish)
        resolved = linking.resolve(rt, session, arrival, settings)
        if resolved is None:
            token = pending.open_pending(session, arrival, path, rt.clock.now())
            return EmailRequired(token), path
    return linking.complete(rt, resolved), path


def checked_path(typed: str | None) -> str:
    r"""Return the path a browser is sent to in the end; "/" if it is None or blank.

    Invariant: no accepted path leads a browser to another host, whether it follows the site's
    origin or stands alone. Browsers drop tabs and line breaks, and treat `\` as `/`.
    Raises: ReturnPathInvalid.
    """
    path = (typed or "").strip() or "/"
    is_local = path.startswith("/") and not path.startswith("//") and "\\" not in path
    # Control characters, and line and paragraph separators.
    has_breaks = any(unicodedata.category(character) in {"Cc", "Zl", "Zp"} for character in path)
    if not is_local or has_breaks or len(path.encode()) > MAX_PATH_BYTES:
        raise ReturnPathInvalid
    return path


def _redirect_uri(rt: Runtime, provider: Provider, own_origin: str | None) -> str:
    """Return where the provider sends the browser back to: always a URL of the site.

    Raises: CallbackAddressMissing.
    """
    origins = rt.settings.get(site.PUBLIC_SITE_URL)
    if not origins:
        raise CallbackAddressMissing
    path = _callback_path(rt, provider.provider_kind, provider.key)
    return (own_origin if own_origin in origins else origins[0]) + path


def callback_addresses(rt: Runtime, kind: ProviderKind, key: str) -> list[str]:
    """Return the callback URLs to register at a provider, in the order of the site's origins."""
    path = _callback_path(rt, kind, key)
    return [origin + path for origin in rt.settings.get(site.PUBLIC_SITE_URL)]


def _callback_path(rt: Runtime, kind: ProviderKind, key: str) -> str:
    if rt.config.external_auth_legacy_callback:
        return f"{PREFIX}/{kind}/{key}/callback"
    return UNIFIED_CALLBACK


def open_sign_in(rt: Runtime, state: str, sign_in: SignIn, life: timedelta) -> str:
    """Store a sign-in; return the secret for the browser's cookie.

    Raises: RedisError.
    """
    binding = random_token()
    key = _key(state, binding)
    kept = dict(vars(sign_in))
    if sign_in.remember is None:  # the version before does not know it
        del kept["remember"]
    flow_store.put_once(rt, key, kept, life, seal=partial(rt.secret_box.seal, row=key))
    return binding


def consume(rt: Runtime, state: str, binding: str) -> SignIn | None:
    """Return and delete the sign-in with this state and browser secret; None if there is none.

    Of concurrent calls exactly one gets it. Raises: RedisError.
    """
    key = _key(state, binding)
    try:
        stored = flow_store.take_once(rt, key, unseal=partial(rt.secret_box.open, row=key))
    except SecretUnreadable:
        return None  # its encryption key was removed from the keyring meanwhile
    if stored is None:
        return None
    stored.pop("provider_created_at", None)  # written by version 0.1
    return SignIn(**stored)


def claim_code(rt: Runtime, code: str, provider_id: int) -> bool:
    """Return whether the code is well-formed and was not presented for another provider before.

    A malicious provider can redirect its users to an honest one and so obtain the honest one's
    codes from this service (mix-up attack, RFC 9700, section 4.4). Where the honest one's callback
    names no issuer, this check makes such codes unusable here.
    Of concurrent calls only those for one and the same provider get True. Raises: RedisError.
    """
    if not _CODE.fullmatch(code):
        return False
    if len(code) < MIN_TRACKED_CODE_LENGTH:
        return True
    # A provider whose database ignores case and trailing space would accept every spelling.
    key = f"gatehouse:external-code:{digest(code.strip().lower())}"
    mine = str(provider_id)
    is_new = rt.redis.breaker.call(
        lambda redis: redis.set(key, mine, nx=True, ex=CODE_TRACKING_TTL)
    )
    return bool(is_new) or rt.redis.breaker.call(lambda redis: redis.get(key)) == mine


def _key(state: str, binding: str) -> str:
    return f"gatehouse:external-sign-in:{digest(state)}:{digest(binding)}"
