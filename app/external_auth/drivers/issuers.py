"""Which issuer an OpenID provider is: one by one name, or Microsoft's tenants."""

import re
from dataclasses import dataclass

from app.external_auth.drivers.driver import ProviderConfig
from app.external_auth.errors import ProviderMisconfigured
from app.external_auth.models import ProviderKind

GOOGLE = "https://accounts.google.com"
MICROSOFT = "https://login.microsoftonline.com"
DEFAULT_TENANT = "common"
# The tenant of all personal accounts.
CONSUMERS = "9188040d-6c67-4c5b-b112-36a304b66dad"
TENANT_ALIASES = ("common", "organizations", "consumers")

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TENANT_ISSUER = re.compile(r"(https?://[^/?#]+)/([a-z0-9-]+)/v2\.0")


@dataclass(frozen=True)
class Issuer:
    """An issuer with a single name in its document and its tokens.

    It is stored without a trailing slash, which some providers' names have. `url` is what the path
    of the discovery document is appended to; equal issuers share cache entries.
    """

    url: str

    def accepts_document_issuer(self, name: str) -> bool:
        """Return whether the discovery document may have `name` as its issuer."""
        return name in (self.url, f"{self.url}/")

    def accepts_token_issuer(self, name: str, documented: str) -> bool:
        """Return whether `name` may be an ID token's issuer if the document says `documented`."""
        return name == documented


@dataclass(frozen=True)
class TenantIssuer(Issuer):
    """One tenant of Microsoft, or an alias that stands for many."""

    authority: str
    tenant: str

    @classmethod
    def of(cls, authority: str, tenant: str) -> "TenantIssuer":
        """Return the issuer of a tenant, or of an alias."""
        return cls(f"{authority}/{tenant}/v2.0", authority, tenant)

    def accepts_document_issuer(self, name: str) -> bool:
        """Return whether the document may call its issuer this; an alias may use a template."""
        if name == self.url:
            return True
        if self.tenant not in TENANT_ALIASES:
            return False
        return name == f"{self.authority}/{{tenantid}}/v2.0" or self._stands_for(name)

    def accepts_token_issuer(self, name: str, documented: str) -> bool:  # noqa: ARG002
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


def issuer_of(provider: ProviderConfig) -> Issuer:
    """Return the issuer to trust: what is stored, else the kind's own.

    Raises: ProviderMisconfigured.
    """
    stored = provider.issuer_url
    if provider.provider_kind is ProviderKind.MICROSOFT:
        if provider.tenant or not stored:
            return TenantIssuer.of(MICROSOFT, provider.tenant or DEFAULT_TENANT)
        return _tenant_issuer(stored) or Issuer(stored)
    if not stored and provider.provider_kind is not ProviderKind.GOOGLE:
        raise ProviderMisconfigured("issuer_url is missing")
    return Issuer(stored or GOOGLE)


def tenant_of(url: str) -> str | None:
    """Return the tenant that a Microsoft issuer URL names; None for every other URL."""
    issuer = _tenant_issuer(url)
    return issuer.tenant if issuer and issuer.authority == MICROSOFT else None


def is_tenant(word: str) -> bool:
    """Return whether a lower-case word is a tenant alias or a tenant id."""
    return word in TENANT_ALIASES or _UUID.fullmatch(word) is not None


def _tenant_issuer(url: str) -> TenantIssuer | None:
    """Return the issuer for a URL that names a tenant, on whatever host; None if it names none."""
    found = _TENANT_ISSUER.fullmatch(url)
    return TenantIssuer.of(found[1], found[2]) if found and is_tenant(found[2]) else None
