"""Drivers: how to have a provider identify a user."""

from app.core.runtime import Runtime
from app.external_auth.drivers.driver import Driver, ProviderConfig
from app.external_auth.drivers.oauth2 import (
    GenericOAuth2Driver,
    GithubDriver,
    OAuth2Driver,
    QQDriver,
)
from app.external_auth.drivers.openid import OpenIdDriver
from app.external_auth.models import ProviderKind

_OAUTH2: dict[ProviderKind, type[OAuth2Driver]] = {
    ProviderKind.GENERIC_OAUTH2: GenericOAuth2Driver,
    ProviderKind.GITHUB: GithubDriver,
    ProviderKind.QQ: QQDriver,
}


def of(rt: Runtime, provider: ProviderConfig) -> Driver:
    """Return a driver for a single use: its time budget starts now."""
    http_client = rt.http_client.conversation()
    if driver := _OAUTH2.get(provider.provider_kind):
        return driver(provider, http_client)
    return OpenIdDriver(provider, http_client, rt.http_client.cache, rt.clock)
