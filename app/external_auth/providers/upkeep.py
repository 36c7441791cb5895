"""Maintenance of external sign-in as a whole: key rotation, cleanup and diagnosis."""

from datetime import timedelta

from sqlalchemy.orm import Session

from app.core.database import bulk
from app.core.database.key_use import KeyUse
from app.core.runtime import Runtime
from app.core.secret_box import Resealed, Resealer
from app.external_auth import queries
from app.external_auth.errors import ProviderMisconfigured
from app.external_auth.models import Provider
from app.external_auth.providers.service import driver_of, list_all, may_assert, namespace_of

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


def enabled_names(rt: Runtime) -> list[str]:
    """Return the display names of the enabled providers."""
    return [provider.display_name for provider in list_all(rt) if provider.enabled]


def remarks(rt: Runtime, provider: Provider) -> list[str]:
    """Return warnings for an operator who has just configured a provider.

    The namespace of a generic_oauth2 provider is whatever its record says: nothing signed
    distinguishes its subjects from those of another provider.
    """
    namespace = namespace_of(rt, provider)
    if namespace is None:
        return _broken_links(rt, provider)
    is_unsigned = provider.provider_kind.has_manual_endpoints
    told = [
        f"{other.name} knows its people as those of {namespace}, too: "
        "the same subject is the same person, and signs in to the same account."
        for other in list_all(rt)
        if other.id != provider.id
        and (is_unsigned or other.provider_kind.has_manual_endpoints)
        and namespace_of(rt, other) == namespace
    ]
    if is_unsigned and not provider.issuer_url and not _count_links(rt, provider):
        told.append(
            f"Its people are known as those of {namespace}. If that is not one provider's alone, "
            "set --issuer-url now: once people have signed in, it would cut their links."
        )
    return told + _broken_links(rt, provider)


def broken_links(rt: Runtime) -> list[str]:
    """Describe the links at enabled providers that sign nobody in, since their issuer changed."""
    return [
        f"{provider.name}: {remark}"
        for provider in list_all(rt)
        if provider.enabled
        for remark in _broken_links(rt, provider)
    ]


def unreadable_keys(rt: Runtime) -> list[str]:
    """Return the provider keys whose client secret no encryption key here can decrypt."""
    unreadable = []
    for provider in list_all(rt):
        try:
            driver_of(rt, provider)
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
    with rt.reading() as session:
        return queries.count_links(session, provider.id)
