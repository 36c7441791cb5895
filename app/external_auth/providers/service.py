"""Use cases of providers: administration, upkeep, and the drivers that speak to them.

Invariant: while passwords and passkeys are switched off, at least one provider stays enabled. Any
change that could break this holds the lock SETTINGS, as does switching those off.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.audit import service as audit
from app.audit.models import Action, EntityType
from app.core.access import Operator
from app.core.runtime import Runtime, SignInSwitch
from app.core.texts import did_you_mean, pluralized, shortened
from app.crypto.secret_box import REDACTED, Resealed, Resealer, SecretUnreadable
from app.crypto.tokens import random_uuid
from app.external_auth import queries
from app.external_auth.drivers import DRIVERS
from app.external_auth.drivers.driver import Driver, report
from app.external_auth.errors import (
    KindUnknown,
    LastProvider,
    ProviderAmbiguous,
    ProviderChanged,
    ProviderExists,
    ProviderFailed,
    ProviderKeyInvalid,
    ProviderMisconfigured,
    ProviderNeeded,
    ProviderNotFound,
)
from app.external_auth.models import Provider, ProviderKind
from app.external_auth.providers import schemas
from app.external_auth.providers.fields import FIELDS
from app.passkeys import relying_party
from app.settings import keys
from app.settings import queries as settings_queries
from app.settings import service as settings
from app.store import bulk, locks
from app.store.key_use import KeyUse
from app.users import service as users

SECRET_UNREADABLE = (
    "the client secret cannot be decrypted with any key; is a key missing? Put it back; only if it "
    "is lost, set the secret again"
)
ALIASES = {"oauth2": ProviderKind.GENERIC_OAUTH2}
_PAGE_OF_A_NEW_ONE = "new"  # /admin/external-auth/new
_KEY = re.compile(r"[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])")
# For this long a late click is told that the link has expired, rather than that it is unknown.
RETENTION = timedelta(days=7)


def list_enabled(rt: Runtime) -> list[Provider]:
    """Return the enabled providers by display name."""
    with rt.reading() as session:
        return queries.list_providers(session, Provider.enabled.is_(True))


def list_all(rt: Runtime) -> list[Provider]:
    """Return every provider by display name."""
    with rt.reading() as session:
        return queries.list_providers(session)


def named_kind(typed: str) -> ProviderKind:
    """Return the kind with this wire name or alias.

    Raises: KindUnknown.
    """
    try:
        return ALIASES.get(typed) or ProviderKind(typed)
    except ValueError:
        raise KindUnknown from None


def checked_key(typed: str) -> str:
    """Return a provider's key, stripped and in lower case.

    Raises: ProviderKeyInvalid.
    """
    key = typed.strip().lower()
    if not _KEY.fullmatch(key) or key == _PAGE_OF_A_NEW_ONE:
        raise ProviderKeyInvalid
    return key


def add(rt: Runtime, by: Operator, *, kind: str, key: str | None, **typed: Any) -> Provider:
    """Create a provider; `typed` has the fields of the kind's schema.

    Without a key (None or blank) it gets a UUID for one, without a `client_secret` (None or blank)
    it is a public client. Raises: KindUnknown, ProviderKeyInvalid, ProviderInvalid, ProviderExists.
    """
    now, provider_kind = rt.clock.now(), named_kind(kind)
    key = checked_key(key) if key and key.strip() else random_uuid()
    provider = Provider(provider_kind=provider_kind, key=key, created_at=now)
    _set(rt, provider, schemas.load(provider_kind, typed))
    with rt.transaction() as session:
        if queries.find_provider_by_key(session, provider_kind, provider.key):
            raise ProviderExists
        session.add(provider)
        try:
            session.flush()
        except IntegrityError:
            raise ProviderExists from None  # another command inserted it first
        record(rt, session, by, Action.ADMIN_CREATE_EXTERNAL_AUTH_PROVIDER, provider)
        if provider.enabled:
            _tell(rt, session, by, provider, "added")
    return provider


def update(
    rt: Runtime,
    by: Operator,
    name: str | int,
    *,
    expected_updated_at: datetime | None = None,
    **typed: Any,
) -> Provider:
    """Change the given fields of a provider; a blank text clears an optional field.

    `expected_updated_at` is the state the change is meant for; None accepts any.
    Raises: KindUnknown, ProviderKeyInvalid, ProviderNotFound, ProviderAmbiguous, ProviderChanged,
    ProviderInvalid, LastProvider.
    """
    with _changing(rt, name) as (session, provider):
        if expected_updated_at not in (None, provider.updated_at):
            raise ProviderChanged
        was_enabled = provider.enabled
        columns = schemas.load(provider.provider_kind, typed, partial=True)
        if not _set(rt, provider, columns):
            return provider
        session.flush()
        if was_enabled and not provider.enabled:
            _require_sign_in_method(rt, session)
        record(rt, session, by, Action.ADMIN_UPDATE_EXTERNAL_AUTH_PROVIDER, provider)
        if was_enabled != provider.enabled:
            _tell(rt, session, by, provider, f"switched {'on' if provider.enabled else 'off'}")
    return provider


def remove(rt: Runtime, by: Operator, name: str | int, *, is_forced: bool) -> Provider:
    """Delete a provider with its links and pending identities; the accounts stay.

    Return it as it was. `is_forced` does so even if some accounts can sign in only with it.
    Raises: KindUnknown, ProviderKeyInvalid, ProviderNotFound, ProviderAmbiguous, LastProvider,
    ProviderNeeded.
    """
    with _changing(rt, name) as (session, provider):
        cut_off = 0 if is_forced else count_dependents(rt, session, provider)
        session.delete(provider)
        session.flush()
        if provider.enabled:
            _require_sign_in_method(rt, session)
        if cut_off:
            accounts = pluralized(cut_off, "account", "accounts")
            raise ProviderNeeded(f"{accounts} can sign in only with this provider.")
        record(rt, session, by, Action.ADMIN_DELETE_EXTERNAL_AUTH_PROVIDER, provider)
        if provider.enabled:
            _tell(rt, session, by, provider, "removed")
    return provider


def count_dependents(rt: Runtime, session: Session, provider: Provider) -> int:
    """Return how many accounts can sign in only with this provider."""
    if not provider.enabled:
        return 0
    others = queries.list_providers(session, Provider.enabled.is_(True), Provider.id != provider.id)
    return queries.count_dependents(
        session,
        provider.id,
        with_passwords=rt.settings.get(keys.PASSWORD_LOGIN_ENABLED),
        with_passkeys=rt.settings.get(keys.PASSKEY_LOGIN_ENABLED) and relying_party.is_usable(rt),
        namespaces=[
            namespace
            for namespace in queries.list_namespaces(session)
            if any(may_assert(rt, other, namespace) for other in others)
        ],
    )


def driver_of(rt: Runtime, provider: Provider) -> Driver:
    """Return a driver for one conversation with a provider: its time budget starts now.

    Raises: ProviderMisconfigured if the client secret cannot be decrypted.
    """
    secret = provider.client_secret
    try:
        secret = rt.secret_box.open(secret, provider.secret_row_name) if secret else None
    except SecretUnreadable:
        report(provider, SECRET_UNREADABLE)
        raise ProviderMisconfigured(SECRET_UNREADABLE) from None
    return DRIVERS[provider.provider_kind](rt, provider, secret)


def may_assert(rt: Runtime, provider: Provider, namespace: str) -> bool:
    """Return whether a provider, as configured now, may assert identities of this namespace."""
    try:
        return driver_of(rt, provider).may_assert(namespace)
    except ProviderFailed:
        return False


def namespace_of(rt: Runtime, provider: Provider) -> str | None:
    """Return the namespace of a provider's subjects; None if it varies by user or is unusable.

    In stored links it may have a trailing slash.
    """
    try:
        return driver_of(rt, provider).namespace()
    except ProviderFailed:
        return None


def delete_expired(rt: Runtime) -> int:
    """Delete pending identities that expired more than a week ago; return how many."""
    before = rt.clock.now() - RETENTION
    return bulk.delete_in_batches(rt, queries.delete_expired, before)


def reseal(rt: Runtime, session: Session) -> Resealed:
    """Re-encrypt the client secrets under the newest key.

    Those that cannot be decrypted are left alone: a key that is put back may still open them.
    """
    resealer, changed = Resealer(rt.secret_box), 0
    for provider in queries.list_providers(session, Provider.client_secret.is_not(None)):
        fresh = resealer.resealed(provider.client_secret or "", provider.secret_row_name)
        if fresh is not None:
            changed += queries.replace_secret(session, provider, fresh)
    return Resealed(changed, resealer.unreadable)


def count_keys(rt: Runtime, session: Session, use: KeyUse) -> None:
    """Count the client secrets by the key they are encrypted with."""
    found = queries.list_providers(session)
    secrets = {one.secret_row_name: one.client_secret for one in found if one.client_secret}
    use.add_secrets(rt.secret_box, secrets)


def _set(rt: Runtime, provider: Provider, columns: dict[str, Any]) -> bool:
    """Store validated fields; False if they all have these values already.

    The placeholder that is shown for the secret does not change it.
    """
    secret = columns.pop("client_secret", REDACTED)
    is_changed = secret != REDACTED and bool(secret or provider.client_secret)
    if is_changed:
        sealed = rt.secret_box.seal(secret, provider.secret_row_name) if secret else None
        provider.client_secret = sealed
    for name, value in columns.items():
        if getattr(provider, name) != value:
            setattr(provider, name, value)
            is_changed = True
    if is_changed:
        provider.updated_at = rt.clock.now()
    return is_changed


@contextmanager
def _changing(rt: Runtime, name: str | int) -> Iterator[tuple[Session, Provider]]:
    """Open the transaction in which a provider is changed."""
    with rt.transaction() as session:
        locks.hold(session, locks.SETTINGS)
        yield session, named(session, name)


def _tell(rt: Runtime, session: Session, by: Operator, provider: Provider, did: str) -> None:
    """Tell the other administrators what one of them did; a command line has no thieves."""
    if by.user_id is not None:
        what = f"Signing in with {provider.display_name}"
        switch = SignInSwitch(f"provider:{provider.id}", what, did)
        users.notify_administrators_of_switch(rt, session, by, switch)


def _require_sign_in_method(rt: Runtime, session: Session) -> None:
    # From the database, not the cache: another command may just have switched something off.
    if settings.leaves_no_login_method(rt, session, settings_queries.list_texts(session)):
        raise LastProvider


def named(session: Session, name: str | int) -> Provider:
    """Return the provider that an operator names by its key or by `kind/key`, or by its id.

    Raises: KindUnknown, ProviderKeyInvalid, ProviderNotFound, ProviderAmbiguous.
    """
    if isinstance(name, int):
        if (provider := session.get(Provider, name)) is None:
            raise ProviderNotFound
        return provider
    typed_kind, separator, typed_key = name.strip().rpartition("/")
    kind = named_kind(typed_kind) if separator else None
    found = queries.list_providers(session, Provider.key == checked_key(typed_key))
    if kind is not None:
        found = [provider for provider in found if provider.provider_kind is kind]
    if len(found) > 1:
        raise ProviderAmbiguous
    if not found:
        keys = [provider.key for provider in queries.list_providers(session)]
        hint = did_you_mean(typed_key, keys)
        raise ProviderNotFound(f"There is no provider {shortened(name)}.{hint}")
    return found[0]


def record(rt: Runtime, session: Session, by: Operator, action: Action, provider: Provider) -> None:
    """Record what an operator did to a provider.

    Raises: TokenInvalid, AccountDisabled, AdminRequired, if the operator is not one any more.
    """
    recorded = ["key", *(field.name for field in FIELDS if field.is_recorded)]
    about: dict[str, Any] = {
        "entity_id": provider.id,
        "entity_name": provider.key,
        "details": {name: getattr(provider, name) for name in recorded},
    }
    audit.record_by(rt, session, by, action, EntityType.EXTERNAL_AUTH_PROVIDER, **about)
