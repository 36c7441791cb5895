"""Microsoft, whose discovery document may speak for many tenants at once (spec 03 §7.3)."""

import re
from dataclasses import dataclass

from app.external_auth.drivers.discovery import Issuer
from app.external_auth.drivers.interface import ProviderConfig
from app.external_auth.drivers.oidc import ExactIssuer
from app.external_auth.drivers.openid import OpenIdDriver

AUTHORITY = "https://login.microsoftonline.com"
DEFAULT_TENANT = "common"
# The tenant of all private accounts.
CONSUMERS = "9188040d-6c67-4c5b-b112-36a304b66dad"
TENANT_ALIASES = ("common", "organizations", "consumers")

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_ISSUER = re.compile(r"(https?://[^/?#]+)/([a-z0-9-]+)/v2\.0")


@dataclass(frozen=True)
class TenantIssuer:
    """One tenant, or an alias that stands for many."""

    authority: str
    tenant: str

    @property
    def url(self) -> str:
        """Return the issuer of the tenant or the alias itself."""
        return f"{self.authority}/{self.tenant}/v2.0"

    def calls_itself(self, name: str) -> bool:
        """Tell whether the document is this tenant's; that of an alias may have a template."""
        if name == self.url:
            return True
        if self.tenant not in TENANT_ALIASES:
            return False
        return name == f"{self.authority}/{{tenantid}}/v2.0" or self._stands_for(name)

    def signs_as(self, name: str, _documented: str) -> bool:
        """Tell whether this is a concrete tenant, and one that the alias stands for."""
        return self._stands_for(name)

    def _stands_for(self, name: str) -> bool:
        prefix, suffix = f"{self.authority}/", "/v2.0"
        tenant = name.removeprefix(prefix).removesuffix(suffix)
        if name != f"{prefix}{tenant}{suffix}" or not _UUID.fullmatch(tenant):
            return False
        if self.tenant == "common":
            return True
        if self.tenant == "organizations":
            return tenant != CONSUMERS
        return tenant == (CONSUMERS if self.tenant == "consumers" else self.tenant)


class MicrosoftDriver(OpenIdDriver):
    """Trusts the tenant, or every tenant of the alias, an administrator names."""

    algorithms = ("RS256",)
    # A tenant's administrator writes any address into an account.
    vouches_for_email = False

    def issuer(self, provider: ProviderConfig) -> Issuer:
        """Return the tenant; a stored issuer counts where no tenant is stored."""
        if provider.tenant or not provider.issuer_url:
            return TenantIssuer(AUTHORITY, provider.tenant or DEFAULT_TENANT)
        return tenant_issuer(provider.issuer_url) or ExactIssuer(provider.issuer_url)


def tenant_issuer(url: str) -> TenantIssuer | None:
    """Return an issuer that names a tenant, at its own host; None where it names none."""
    found = _ISSUER.fullmatch(url)
    return TenantIssuer(found[1], found[2]) if found and is_tenant(found[2]) else None


def tenant_of(url: str) -> str | None:
    """Return the tenant that an issuer at Microsoft names; None for every other URL."""
    issuer = tenant_issuer(url)
    return issuer.tenant if issuer and issuer.authority == AUTHORITY else None


def is_tenant(word: str) -> bool:
    """Tell whether this, in lower case, is an alias or the id of a tenant."""
    return word in TENANT_ALIASES or _UUID.fullmatch(word) is not None
