"""Providers as administrators see them over HTTP."""

from collections.abc import Sequence
from typing import Any

from app.core.runtime import Runtime
from app.external_auth import queries
from app.external_auth.errors import ProviderMisconfigured
from app.external_auth.models import Provider, ProviderKind
from app.external_auth.providers.schemas import SCHEMAS, show
from app.external_auth.providers.service import driver_of
from app.external_auth.sign_in.service import callback_addresses


def kinds(rt: Runtime) -> list[dict[str, Any]]:
    """Return what can be configured for each kind, by kind."""
    return [
        {**SCHEMAS[kind].describe(), "redirect_uri": _redirect_uri(rt, kind, "{key}")}
        for kind in sorted(SCHEMAS)
    ]


def shown(rt: Runtime, providers: Sequence[Provider]) -> list[dict[str, Any]]:
    """Return all of the providers but their secrets, and how they are used."""
    with rt.reading() as session:
        use = queries.read_use(session, [provider.id for provider in providers])
    return [
        {
            **show(provider),
            "created_at": provider.created_at,
            "updated_at": provider.updated_at,
            "redirect_uri": _redirect_uri(rt, provider.provider_kind, provider.key),
            "links": use.get(provider.id, (0, None))[0],
            "last_sign_in_at": use.get(provider.id, (0, None))[1],
            "is_secret_readable": _is_readable(rt, provider),
        }
        for provider in providers
    ]


def _redirect_uri(rt: Runtime, kind: ProviderKind, key: str) -> str | None:
    return next(iter(callback_addresses(rt, kind, key)), None)


def _is_readable(rt: Runtime, provider: Provider) -> bool:
    try:
        driver_of(rt, provider)
    except ProviderMisconfigured:
        return False
    return True
