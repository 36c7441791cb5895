"""Microsoft, whose discovery document may cover many tenants at once (spec 03 §7.3)."""

import re
from dataclasses import dataclass

from app.external_auth.drivers.discovery import Issuer
from app.external_auth.drivers.interface import ProviderConfig
from app.external_auth.drivers.oidc import ExactIssuer
from app.external_auth.drivers.openid import OpenIdDriver

AUTHORITY = "https://login.microsoftonline.com"
DEFAULT_TENANT = "common"
# The tenant of all personal accounts.
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
        """Return the issuer URL of the tenant, or of the alias itself."""
        return f"{self.authority}/{self.tenant}/v2.0"

    def accepts_document_issuer(self, name: str) -> bool:
        """Return whether the document may call its issuer this; an alias may use a template."""
        if name == self.url:
            return True
        if self.tenant not in TENANT_ALIASES:
            return False
        return name == f"{self.authority}/{{tenantid}}/v2.0" or self._stands_for(name)

    def accepts_token_issuer(self, name: str, _documented: str) -> bool:
        """Return whether `name` is a concrete tenant's issuer: this one, or one under the alias."""
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
    """Trusts the configured tenant, or every tenant under the configured alias."""

    algorithms = ("RS256",)
    # A tenant's administrator can give an account any email address.
    trusts_email_verified = False

    def issuer(self, provider: ProviderConfig) -> Issuer:
        """Return the stored tenant's issuer, else the stored issuer, else the default tenant's."""
        if provider.tenant or not provider.issuer_url:
            return TenantIssuer(AUTHORITY, provider.tenant or DEFAULT_TENANT)
        return tenant_issuer(provider.issuer_url) or ExactIssuer(provider.issuer_url)


def tenant_issuer(url: str) -> TenantIssuer | None:
    """Return the issuer for a URL that names a tenant, on whatever host; None if it names none."""
    found = _ISSUER.fullmatch(url)
    return TenantIssuer(found[1], found[2]) if found and is_tenant(found[2]) else None


def tenant_of(url: str) -> str | None:
    """Return the tenant that a Microsoft issuer URL names; None for every other URL."""
    issuer = tenant_issuer(url)
    return issuer.tenant if issuer and issuer.authority == AUTHORITY else None


def is_tenant(word: str) -> bool:
    """Return whether a lower-case word is a tenant alias or a tenant id."""
    return word in TENANT_ALIASES or _UUID.fullmatch(word) is not None
