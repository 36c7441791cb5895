"""What operators should know about providers: broken links, unreadable secrets, open doors."""

from app.core.runtime import Runtime
from app.core.texts import Sentence
from app.external_auth import queries
from app.external_auth.errors import ProviderMisconfigured
from app.external_auth.models import Provider, ProviderKind
from app.external_auth.providers.service import driver_of, list_all, may_assert, namespace_of
from app.settings import keys

ADDRESS_LISTS = keys.EMAIL_ALLOWLIST, keys.EMAIL_BLOCKLIST


def enabled_names(rt: Runtime) -> list[str]:
    """Return the display names of the enabled providers."""
    return [provider.display_name for provider in list_all(rt) if provider.enabled]


def list_remarks(rt: Runtime, provider: Provider) -> list[str]:
    """Return warnings for an operator who has just configured a provider.

    The namespace of a generic_oauth2 provider is whatever its record says: nothing signed
    distinguishes its subjects from those of another provider.
    """
    namespace = namespace_of(rt, provider)
    if namespace is None:
        return [str(remark) for remark in _broken_links(rt, provider)]
    is_unsigned = provider.provider_kind is ProviderKind.GENERIC_OAUTH2
    told = [
        f"{other.name} also identifies people by {namespace}: "
        "the same subject is the same person, and signs in to the same account."
        for other in list_all(rt)
        if other.id != provider.id
        and (is_unsigned or other.provider_kind is ProviderKind.GENERIC_OAUTH2)
        and namespace_of(rt, other) == namespace
    ]
    if is_unsigned and not provider.issuer_url and not _count_links(rt, provider):
        told.append(
            f"People are identified by {namespace}. If other providers share that address, set "
            "the issuer URL now: once people have signed in, changing it would cut their links."
        )
    return [*told, *map(str, _broken_links(rt, provider))]


def broken_links(rt: Runtime) -> list[Sentence]:
    """Describe the links at enabled providers that sign nobody in, since their issuer changed."""
    return [
        sentence
        for provider in list_all(rt)
        if provider.enabled
        for remark in _broken_links(rt, provider)
        for sentence in (Sentence("{provider}:", provider=provider.name), remark)
    ]


def open_to_all(rt: Runtime) -> list[Sentence]:
    """Warn of enabled providers that make accounts for any address beside a list of addresses.

    The lists are for those who register here; a provider has allowed domains of its own.
    """
    lists = [key.name for key in ADDRESS_LISTS if rt.settings.get(key)]
    return [
        Sentence(
            "{provider} makes accounts for addresses of any domain: {lists} only judge who "
            "registers here. Set the provider's allowed domains.",
            provider=provider.name,
            lists=", ".join(lists),
        )
        for provider in list_all(rt)
        if lists and provider.enabled and provider.auto_provision_enabled
        if not provider.allowed_domains
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


def _broken_links(rt: Runtime, provider: Provider) -> list[Sentence]:
    signing = [provider, *(other for other in list_all(rt) if other.enabled)]
    broken = {
        namespace: count
        for namespace, count in _count_links(rt, provider).items()
        if not any(may_assert(rt, other, namespace) for other in signing)
    }
    if not broken:
        return []
    told = ", ".join(f"{namespace} ({count})" for namespace, count in sorted(broken.items()))
    return [
        Sentence(
            "Links that sign nobody in because no enabled provider has their issuer: {issuers}.",
            issuers=told,
        )
    ]


def _count_links(rt: Runtime, provider: Provider) -> dict[str, int]:
    with rt.reading() as session:
        return queries.count_links(session, provider.id)
