"""Drivers, one module per kind of provider: how to have it identify a user."""

from app.core.runtime import Runtime
from app.external_auth.drivers.generic_oauth2 import GenericOAuth2Driver
from app.external_auth.drivers.github import GithubDriver
from app.external_auth.drivers.google import GoogleDriver
from app.external_auth.drivers.interface import Driver, ProviderKind
from app.external_auth.drivers.microsoft import MicrosoftDriver
from app.external_auth.drivers.oidc import OidcDriver
from app.external_auth.drivers.openid import OpenIdDriver
from app.external_auth.drivers.plain_oauth import PlainOAuthDriver
from app.external_auth.drivers.qq import QQDriver
from app.external_auth.drivers.reporting import ReportingDriver

_OPENID: dict[ProviderKind, type[OpenIdDriver]] = {
    ProviderKind.OIDC: OidcDriver,
    ProviderKind.GOOGLE: GoogleDriver,
    ProviderKind.MICROSOFT: MicrosoftDriver,
}
_PLAIN: dict[ProviderKind, type[PlainOAuthDriver]] = {
    ProviderKind.GENERIC_OAUTH2: GenericOAuth2Driver,
    ProviderKind.GITHUB: GithubDriver,
    ProviderKind.QQ: QQDriver,
}


def of(rt: Runtime, kind: ProviderKind) -> Driver:
    """Return a driver of this kind for a single use: its time budget starts now."""
    http_client = rt.http_client.conversation()
    if kind in _OPENID:
        return ReportingDriver(_OPENID[kind](http_client, rt.fetch_cache, rt.clock))
    return ReportingDriver(_PLAIN[kind](http_client))
