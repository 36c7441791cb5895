"""Drivers: how to have a provider identify a user."""

from app.external_auth.drivers.driver import Driver
from app.external_auth.drivers.oauth2 import GenericOAuth2Driver, GithubDriver, QQDriver
from app.external_auth.drivers.openid import GoogleDriver, MicrosoftDriver, OpenIdDriver
from app.external_auth.models import ProviderKind

DRIVERS: dict[ProviderKind, type[Driver]] = {
    ProviderKind.GENERIC_OAUTH2: GenericOAuth2Driver,
    ProviderKind.GITHUB: GithubDriver,
    ProviderKind.GOOGLE: GoogleDriver,
    ProviderKind.MICROSOFT: MicrosoftDriver,
    ProviderKind.OIDC: OpenIdDriver,
    ProviderKind.QQ: QQDriver,
}
