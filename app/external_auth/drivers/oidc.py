"""Any OpenID provider, discovered from its issuer (spec 03 §7.1)."""

from dataclasses import dataclass

from app.external_auth.drivers.discovery import Issuer
from app.external_auth.drivers.errors import ProviderMisconfigured
from app.external_auth.drivers.interface import ProviderConfig
from app.external_auth.drivers.openid import OpenIdDriver


@dataclass(frozen=True)
class ExactIssuer:
    """An issuer with a single name in its document and its tokens.

    It is stored without a trailing slash (spec 03 §9.1), which some providers' names have.
    """

    url: str

    def accepts_document_issuer(self, name: str) -> bool:
        """Return whether this is the issuer's name, with or without a trailing slash."""
        return name in (self.url, f"{self.url}/")

    def accepts_token_issuer(self, name: str, documented: str) -> bool:
        """Return whether this is exactly the name in the document."""
        return name == documented


class OidcDriver(OpenIdDriver):
    """Trusts the issuer that an administrator configured."""

    has_default_scopes = False

    def issuer(self, provider: ProviderConfig) -> Issuer:
        """Return the stored issuer.

        Raises: ProviderMisconfigured.
        """
        if not provider.issuer_url:
            raise ProviderMisconfigured("issuer_url is missing")
        return ExactIssuer(provider.issuer_url)
