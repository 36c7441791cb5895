"""Maintenance of external sign-in as a whole: key rotation, cleanup and diagnosis."""

from datetime import timedelta

from sqlalchemy.orm import Session

from app.core.database import bulk
from app.core.database.key_use import KeyUse
from app.core.runtime import Runtime
from app.core.secret_box import Resealed, Resealer
from app.external_auth import provider_queries, queries
from app.external_auth.drivers.errors import ProviderMisconfigured
from app.external_auth.drivers.interface import ProviderKind
from app.external_auth.models import Provider
from app.external_auth.providers import (
    config_of,
    list_all,
    may_assert,
    namespace_of,
    secret_row_name,
)

# For this long a late click is told that the link has expired, rather than that it is unknown.
RETENTION = timedelta(days=7)


def delete_expired(rt: Runtime) -> int:
    """Delete pending identities that expired more than a week ago; return how many."""
    before = rt.clock.now() - RETENTION
    return bulk.delete_in_batches(rt, queries.delete_expired, before)


def reseal(rt: Runtime, session: Session) -> Resealed:
    """Re-encrypt the client secrets under the newest key.

    Those that cannot be decrypted are left alone: a key that is put back may still open them.
    """
    resealer, changed = Resealer(rt.secret_box), 0
    for provider in provider_queries.list_all(session):
        sealed = provider.client_secret
        if not sealed:
            continue
        fresh = resealer.resealed(sealed, secret_row_name(provider.provider_kind, provider.key))
        if fresh is not None:
            changed += provider_queries.replace_secret(session, provider.id, sealed, fresh)
    return Resealed(changed, resealer.unreadable)


def count_keys(rt: Runtime, session: Session, use: KeyUse) -> None:
    """Count the client secrets by the key they are encrypted with."""
    secrets = {
        secret_row_name(provider.provider_kind, provider.key): provider.client_secret
        for provider in provider_queries.list_all(session)
        if provider.client_secret
    }
    use.add_secrets(rt.secret_box, secrets)


def enabled_names(rt: Runtime) -> list[str]:
    """Return the display names of the enabled providers."""
    return [provider.display_name for provider in list_all(rt) if provider.enabled]


def remarks(rt: Runtime, provider: Provider) -> list[str]:
    """Return warnings for an operator who has just configured a provider (spec 03 §7.2).

    The namespace of a generic_oauth2 provider is whatever its record says: nothing signed
    distinguishes its subjects from those of another provider.
    """
    namespace = namespace_of(rt, provider)
    if namespace is None:
        return _broken_links(rt, provider)
    others = [other for other in list_all(rt) if other.id != provider.id]
    told = [
        f"{_name(other)} knows its people as those of {namespace}, too: "
        "the same subject is the same person, and signs in to the same account."
        for other in others
        if _is_unsigned(provider, other) and namespace_of(rt, other) == namespace
    ]
    if _is_unsigned(provider) and not provider.issuer_url and not _count_links(rt, provider):
        told.append(
            f"Its people are known as those of {namespace}. If that is not one provider's alone, "
            "set --issuer-url now: once people have signed in, it would cut their links."
        )
    return told + _broken_links(rt, provider)


def broken_links(rt: Runtime) -> list[str]:
    """Describe the links at enabled providers that sign nobody in, since their issuer changed."""
    return [
        f"{_name(provider)}: {remark}"
        for provider in list_all(rt)
        if provider.enabled
        for remark in _broken_links(rt, provider)
    ]


def unreadable_keys(rt: Runtime) -> list[str]:
    """Return the provider keys whose client secret no encryption key here can decrypt."""
    unreadable = []
    for provider in list_all(rt):
        try:
            config_of(rt, provider)
        except ProviderMisconfigured:
            unreadable.append(provider.key)
    return unreadable


def _broken_links(rt: Runtime, provider: Provider) -> list[str]:
    signing = [provider, *(other for other in list_all(rt) if other.enabled)]
    broken = {
        namespace: count
        for namespace, count in _count_links(rt, provider).items()
        if not any(may_assert(rt, other, namespace) for other in signing)
    }
    if not broken:
        return []
    told = ", ".join(f"{count} of {namespace}" for namespace, count in sorted(broken.items()))
    return [f"Links that sign nobody in, since no enabled provider has their issuer: {told}."]


def _count_links(rt: Runtime, provider: Provider) -> dict[str, int]:
    with rt.reading() as connection:
        return queries.count_links(connection, provider.id)


def _is_unsigned(*providers: Provider) -> bool:
    return any(provider.provider_kind is ProviderKind.GENERIC_OAUTH2 for provider in providers)


def _name(provider: Provider) -> str:
    return f"{provider.provider_kind}/{provider.key}"
