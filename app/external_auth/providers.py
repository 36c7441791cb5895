"""Use cases of providers: administration, and the configuration their drivers get.

Invariant: while passwords and passkeys are switched off, at least one provider stays enabled. Any
change that could break this holds the lock SETTINGS, as does switching those off (spec 03 §9.1).
"""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.audit import service as audit
from app.audit.models import Action, EntityType, Event
from app.core.database import locks
from app.core.database.database import Reader
from app.core.live_settings import MAX_AGE_SECONDS
from app.core.runtime import Runtime
from app.core.secret_box import REDACTED, SecretUnreadable
from app.core.texts import did_you_mean, shortened
from app.external_auth import drivers, kinds, provider_queries, provider_rules
from app.external_auth.drivers.errors import DiscoveryFailed, ProviderMisconfigured
from app.external_auth.drivers.interface import (
    ClaimNames,
    ProviderConfig,
    ProviderKind,
    TestResult,
)
from app.external_auth.drivers.reporting import report
from app.external_auth.errors import (
    LastProvider,
    ProviderAmbiguous,
    ProviderExists,
    ProviderNotFound,
)
from app.external_auth.kinds import TRAITS
from app.external_auth.models import Provider
from app.settings import queries as settings_queries
from app.settings import service as settings

MAX_AGE = timedelta(seconds=MAX_AGE_SECONDS)
SECRET_UNREADABLE = (
    "the client secret cannot be decrypted with any key; is a key missing? Put it back; only if it "
    "is lost, set the secret again"
)


def list_enabled(rt: Runtime) -> list[Provider]:
    """Return the enabled providers by display name."""
    with rt.reading() as connection:
        return provider_queries.list_enabled(connection)


def list_all(rt: Runtime) -> list[Provider]:
    """Return every provider by display name."""
    with rt.reading() as connection:
        return provider_queries.list_all(connection)


def add(rt: Runtime, *, kind: str, key: str, secret: str | None, **typed: Any) -> Provider:
    """Create a provider.

    `typed` has the fields of `provider_rules.new_columns`; without a `secret` (None or blank) it is
    a public client. Raises: KindUnknown, ProviderKeyInvalid, ProviderInvalid, ProviderExists.
    Source: spec 03 §9.1.
    """
    provider_kind, provider_key = kinds.named(kind), provider_rules.provider_key(key)
    columns = provider_rules.new_columns(provider_kind, typed)
    columns["client_secret"] = _sealed(rt, provider_kind, provider_key, secret)
    now = rt.clock.now()
    with rt.transaction() as session:
        if provider_queries.list_named(session, provider_key, provider_kind):
            raise ProviderExists
        try:
            provider_id = provider_queries.add(
                session,
                key=provider_key,
                provider_kind=provider_kind,
                created_at=now,
                updated_at=now,
                **columns,
            )
        except IntegrityError:
            raise ProviderExists from None  # another command inserted it first
        provider = _get(session, provider_id)
        _record(rt, session, Action.ADMIN_CREATE_EXTERNAL_AUTH_PROVIDER, provider)
    return provider


def update(rt: Runtime, name: str, *, secret: str | None = None, **typed: Any) -> Provider:
    """Change the given fields of a provider; a blank text clears an optional field.

    A `secret` of None keeps the client secret, as does the placeholder that is shown instead of it.
    Raises: KindUnknown, ProviderKeyInvalid, ProviderNotFound, ProviderAmbiguous, ProviderInvalid,
    LastProvider. Source: spec 03 §9.1.
    """

    def change(session: Session, provider: Provider) -> None:
        kind = provider.provider_kind
        columns = provider_rules.changed_columns(kind, typed)
        if "options" in columns and TRAITS[kind].is_dedicated:
            columns["issuer_url"] = None  # a tenant replaces a stored issuer
        if secret is not None and secret.strip() != REDACTED:
            columns["client_secret"] = _sealed(rt, kind, provider.key, secret)
        provider_queries.set_columns(session, provider.id, rt.clock.now(), **columns)

    return _change(rt, name, change, Action.ADMIN_UPDATE_EXTERNAL_AUTH_PROVIDER)


def set_enabled(rt: Runtime, name: str, *, enabled: bool) -> Provider:
    """Enable or disable sign-ins with a provider; links stay.

    Raises: what `update` raises.
    """
    return update(rt, name, enabled=enabled)


def remove(rt: Runtime, name: str) -> Provider:
    """Delete a provider with its links; the accounts stay.

    Raises: KindUnknown, ProviderKeyInvalid, ProviderNotFound, ProviderAmbiguous, LastProvider.
    """

    def change(session: Session, provider: Provider) -> None:
        provider_queries.remove(session, provider.id)

    return _change(rt, name, change, Action.ADMIN_DELETE_EXTERNAL_AUTH_PROVIDER)


def test(rt: Runtime, name: str) -> TestResult:
    """Test a provider, enabled or not, as far as possible without a sign-in.

    Unlike a browser, the administrator is told what is wrong with it.
    Raises: KindUnknown, ProviderKeyInvalid, ProviderNotFound, ProviderAmbiguous, DiscoveryFailed,
    ProviderMisconfigured. Source: spec 03 §9.3.
    """
    with rt.reading() as connection:
        provider = _named(connection, name)
    try:
        result = drivers.of(rt, provider.provider_kind).test(config_of(rt, provider))
    except (DiscoveryFailed, ProviderMisconfigured) as error:
        raise type(error)(error.reason, is_reason_public=True) from None
    now = rt.clock.now()
    with rt.transaction() as session:
        provider = _named(session, name)  # it may have been removed meanwhile
        provider_queries.set_columns(session, provider.id, now)
        _record(rt, session, Action.ADMIN_TEST_EXTERNAL_AUTH_PROVIDER, provider)
    return result


def get_cached(rt: Runtime, kind: ProviderKind, key: str) -> Provider:
    """Return a provider as last read from the database, by a read begun at most a second ago.

    If a read is in progress, wait for it without a timeout. Only the start of a sign-in uses this
    cache, to be cheap; its end reads the database. Raises: ProviderNotFound.
    """

    def read() -> Provider:
        provider = provider_queries.look_up_key(rt.database, kind, key)
        if provider is None:
            raise ProviderNotFound
        return provider

    return rt.fetch_cache.get((kind, key), read, ttl=MAX_AGE).value


def config_of(rt: Runtime, provider: Provider) -> ProviderConfig:
    """Return a provider's configuration for its driver, cached per stored state.

    Raises: ProviderMisconfigured if the client secret cannot be decrypted.
    """
    return rt.fetch_cache.get(provider, lambda: _config_of(rt, provider)).value


def _config_of(rt: Runtime, provider: Provider) -> ProviderConfig:
    return ProviderConfig(
        id=provider.id,
        key=provider.key,
        kind=provider.provider_kind,
        client_id=provider.client_id,
        client_secret=_opened(rt, provider),
        scopes=provider.scopes,
        issuer_url=provider.issuer_url,
        authorization_url=provider.authorization_url,
        token_url=provider.token_url,
        userinfo_url=provider.userinfo_url,
        tenant=provider.tenant,
        claims=ClaimNames(
            subject=provider.subject_claim,
            username=provider.username_claim,
            display_name=provider.display_name_claim,
            email=provider.email_claim,
            email_verified=provider.email_verified_claim,
        ),
    )


def may_assert(rt: Runtime, provider: Provider, namespace: str) -> bool:
    """Return whether a provider, as configured now, may assert identities of this namespace."""
    try:
        return drivers.of(rt, provider.provider_kind).may_assert(config_of(rt, provider), namespace)
    except ProviderMisconfigured:
        return False


def namespace_of(rt: Runtime, provider: Provider) -> str | None:
    """Return the namespace of a provider's subjects; None if it varies by user or is unusable.

    In stored links it may have a trailing slash.
    """
    try:
        return drivers.of(rt, provider.provider_kind).namespace(config_of(rt, provider))
    except ProviderMisconfigured:
        return None


def secret_row_name(kind: ProviderKind, key: str) -> str:
    """Return the row name that a provider's encrypted client secret is bound to."""
    return f"external_auth_provider:{kind}:{key}"


def _sealed(rt: Runtime, kind: ProviderKind, key: str, typed: str | None) -> str | None:
    secret = provider_rules.client_secret(typed)
    if secret is None or secret == REDACTED:
        return None
    return rt.secret_box.seal(secret, secret_row_name(kind, key))


def _opened(rt: Runtime, provider: Provider) -> str | None:
    if provider.client_secret is None:
        return None
    row = secret_row_name(provider.provider_kind, provider.key)
    try:
        return rt.secret_box.open(provider.client_secret, row)
    except SecretUnreadable:
        report(provider.key, provider.provider_kind, SECRET_UNREADABLE)
        raise ProviderMisconfigured(SECRET_UNREADABLE) from None


def _change(
    rt: Runtime, name: str, change: Callable[[Session, Provider], None], action: Action
) -> Provider:
    """Apply a change, unless it removes the last way to sign in; return the changed provider.

    A deleted provider is returned as it was.
    """
    with rt.transaction() as session:
        locks.hold(session, locks.SETTINGS)
        before = _named(session, name)
        change(session, before)
        after = provider_queries.find(session, before.id)
        if before.enabled and not (after and after.enabled):
            _require_sign_in_method(rt, session)
        _record(rt, session, action, after or before)
        return after or before


def _require_sign_in_method(rt: Runtime, session: Session) -> None:
    # From the database, not the cache: another command may just have switched something off.
    if settings.leaves_no_login_method(rt, session, settings_queries.list_texts(session)):
        raise LastProvider


def _named(reader: Reader, name: str) -> Provider:
    """Return the provider that an operator names by its key or by `kind/key`.

    Raises: KindUnknown, ProviderKeyInvalid, ProviderNotFound, ProviderAmbiguous.
    """
    typed_kind, separator, typed_key = name.strip().rpartition("/")
    kind = kinds.named(typed_kind) if separator else None
    found = provider_queries.list_named(reader, provider_rules.provider_key(typed_key), kind)
    if len(found) > 1:
        raise ProviderAmbiguous
    if not found:
        keys = [provider.key for provider in provider_queries.list_all(reader)]
        hint = did_you_mean(typed_key, keys)
        raise ProviderNotFound(f"There is no provider {shortened(name)}.{hint}")
    return found[0]


def _get(session: Session, provider_id: int) -> Provider:
    provider = provider_queries.find(session, provider_id)
    if provider is None:
        raise ProviderNotFound
    return provider


def _record(rt: Runtime, session: Session, action: Action, provider: Provider) -> None:
    told: Mapping[str, Any] = {
        "key": provider.key,
        "icon_url": provider.icon_url,
        "issuer_url": provider.issuer_url,
        **{name: getattr(provider, name) for name in provider_rules.FLAGS},
    }
    event = Event(
        action,
        EntityType.EXTERNAL_AUTH_PROVIDER,
        entity_id=provider.id,
        entity_name=provider.key,
        details=told,
    )
    audit.record(rt, session, event)
