"""Testing a provider, stored or not, as far as that is possible without a sign-in."""

from typing import Any

from app.audit import service as audit
from app.audit.models import Action, EntityType
from app.core.access import Operator
from app.core.runtime import Runtime
from app.crypto.secret_box import REDACTED
from app.external_auth.drivers import DRIVERS
from app.external_auth.drivers.driver import Driver
from app.external_auth.drivers.openid import is_tenant, tenant_of
from app.external_auth.errors import DiscoveryFailed, ProviderInvalid, ProviderMisconfigured
from app.external_auth.models import Provider, ProviderKind
from app.external_auth.providers import schemas
from app.external_auth.providers.service import driver_of, named, named_kind, record

DRAFT = "draft"
# Their issuer is fixed, but a draft may have another one.
WITH_ISSUER = (ProviderKind.GOOGLE, ProviderKind.MICROSOFT)


def test(rt: Runtime, by: Operator, name: str | int) -> dict[str, Any]:
    """Test a provider, enabled or not.

    Unlike a browser, the administrator is told what is wrong with it.
    Raises: KindUnknown, ProviderKeyInvalid, ProviderNotFound, ProviderAmbiguous, DiscoveryFailed,
    ProviderMisconfigured.
    """
    with rt.reading() as session:
        provider = named(session, name)
    try:
        result = _tested(driver_of(rt, provider))
    except ProviderMisconfigured as error:
        raise _told(error) from None
    with rt.transaction() as session:
        provider = named(session, name)  # it may have been removed meanwhile
        provider.updated_at = rt.clock.now()
        record(rt, session, by, Action.ADMIN_TEST_EXTERNAL_AUTH_PROVIDER, provider)
    return result


def test_draft(rt: Runtime, by: Operator, kind: str, **typed: Any) -> dict[str, Any]:
    """Test what is not stored; `typed` is as for a new provider, and it is recorded either way.

    For Google and Microsoft, `issuer_url` may name another issuer than the fixed one.
    Raises: KindUnknown, ProviderInvalid, DiscoveryFailed, ProviderMisconfigured.
    """
    provider_kind = named_kind(kind)
    draft, secret = _draft(provider_kind, typed)
    is_success = False
    try:
        result = _tested(DRIVERS[provider_kind](rt, draft, secret))
        is_success = True
    finally:
        with rt.transaction() as session:
            details = {"provider_kind": provider_kind, "key": DRAFT, "success": is_success}
            about: dict[str, Any] = {"entity_name": DRAFT, "details": details}
            action = Action.ADMIN_TEST_EXTERNAL_AUTH_PROVIDER
            audit.record_by(rt, session, by, action, EntityType.EXTERNAL_AUTH_PROVIDER, **about)
    return result


def _draft(kind: ProviderKind, typed: dict[str, Any]) -> tuple[Provider, str | None]:
    """Return a provider that is stored nowhere, and its secret."""
    given = {"display_name": schemas.SCHEMAS[kind].title, **typed}
    issuer = (given.pop("issuer_url", None) or "").strip() if kind in WITH_ISSUER else ""
    if issuer and kind is ProviderKind.MICROSOFT:
        tenant = tenant_of(issuer.removesuffix("/")) or issuer.lower()
        if is_tenant(tenant):
            given["tenant"], issuer = tenant, ""
    columns = schemas.load(kind, given)
    secret = columns.pop("client_secret", None)
    draft = Provider(provider_kind=kind, key=DRAFT, **columns)
    if issuer:
        draft.issuer_url, draft.options = _issuer(kind, issuer), {}
    return draft, None if secret == REDACTED else secret


def _issuer(kind: ProviderKind, typed: str) -> str:
    columns = schemas.load(ProviderKind.OIDC, {"issuer_url": typed}, partial=True)
    issuer: str = columns["issuer_url"]
    if kind is ProviderKind.MICROSOFT and issuer.startswith("https"):
        raise ProviderInvalid("issuer_url must be a tenant or an issuer of Microsoft")
    return issuer


def _tested(driver: Driver) -> dict[str, Any]:
    try:
        result = driver.test()
    except (DiscoveryFailed, ProviderMisconfigured) as error:
        raise _told(error) from None
    return {"provider": schemas.SCHEMAS[driver.provider.provider_kind].title, **result}


def _told(error: DiscoveryFailed | ProviderMisconfigured) -> Exception:
    """Return the same error with its reason, which the administrator may know."""
    return type(error)(error.reason, is_reason_public=True)
