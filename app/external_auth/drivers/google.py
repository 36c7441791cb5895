"""Google (spec 03 §7.3)."""

from app.external_auth.drivers.discovery import Issuer
from app.external_auth.drivers.interface import ProviderConfig
from app.external_auth.drivers.oidc import ExactIssuer
from app.external_auth.drivers.openid import OpenIdDriver

ISSUER = "https://accounts.google.com"


class GoogleDriver(OpenIdDriver):
    """Trusts Google; its old issuer name without a scheme is not accepted."""

    def issuer(self, provider: ProviderConfig) -> Issuer:
        """Return Google's issuer, or the stored one that overrides it."""
        return ExactIssuer(provider.issuer_url or ISSUER)
