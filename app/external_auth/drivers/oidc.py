"""Any OpenID provider, found by its issuer (spec 03 §7.1)."""

from dataclasses import dataclass

from app.external_auth.drivers.discovery import Issuer
from app.external_auth.drivers.errors import ProviderMisconfigured
from app.external_auth.drivers.interface import ProviderConfig
from app.external_auth.drivers.openid import OpenIdDriver


@dataclass(frozen=True)
class ExactIssuer:
    """An issuer that has one name everywhere."""

    url: str

    def calls_itself(self, name: str) -> bool:
        """Tell whether this is its name, to the letter."""
        return name == self.url

    def signs_as(self, name: str) -> bool:
        """Tell whether this is its name, to the letter."""
        return name == self.url


class OidcDriver(OpenIdDriver):
    """Trusts the issuer an administrator names."""

    has_default_scopes = False

    def issuer(self, provider: ProviderConfig) -> Issuer:
        """Return the stored issuer.

        Raises: ProviderMisconfigured.
        """
        if not provider.issuer_url:
            raise ProviderMisconfigured("issuer_url is missing")
        return ExactIssuer(provider.issuer_url)
