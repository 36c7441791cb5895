"""Reports to the log and the metrics why a sign-in failed, which the browser is not told."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import requests
from prometheus_client import Counter

from app.external_auth.drivers.errors import (
    DiscoveryFailed,
    ProviderMisconfigured,
    ProviderRejected,
)
from app.external_auth.drivers.interface import (
    Authorization,
    Callback,
    Driver,
    ExternalProfile,
    ProviderConfig,
    ProviderKind,
    TestResult,
)
from app.external_auth.drivers.json_responses import transport_reason

log = logging.getLogger(__name__)

FAILURES = Counter(
    "external_auth_failures_total",
    "Sign-ins that failed at the provider.",
    ["kind", "provider"],
)


class ReportingDriver:
    """Wraps a driver: logs its failures, and lets only documented errors through."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def authorize(self, provider: ProviderConfig, redirect_uri: str) -> Authorization:
        """Prepare a sign-in."""
        with _reported(provider):
            return self._driver.authorize(provider, redirect_uri)

    def identify(self, provider: ProviderConfig, callback: Callback) -> ExternalProfile:
        """Exchange the code, and return the user that it was issued for."""
        with _reported(provider):
            return self._driver.identify(provider, callback)

    def namespace(self, provider: ProviderConfig) -> str | None:
        """Return the namespace of the provider's subjects."""
        with _reported(provider):
            return self._driver.namespace(provider)

    def may_assert(self, provider: ProviderConfig, namespace: str) -> bool:
        """Return whether the provider may assert identities of this namespace."""
        with _reported(provider):
            return self._driver.may_assert(provider, namespace)

    def test(self, provider: ProviderConfig) -> TestResult:
        """Check whether the provider is usable; failures go to the caller, not to the log."""
        with _documented():
            return self._driver.test(provider)


@contextmanager
def _reported(provider: ProviderConfig) -> Iterator[None]:
    try:
        with _documented():
            yield
    except (ProviderRejected, DiscoveryFailed, ProviderMisconfigured) as error:
        report(provider.key, provider.kind, error.reason)
        raise


@contextmanager
def _documented() -> Iterator[None]:
    try:
        yield
    except requests.RequestException as error:
        raise ProviderRejected(transport_reason(error)) from None


def report(key: str, kind: ProviderKind, reason: str) -> None:
    """Log why a provider cannot be used, and count it."""
    FAILURES.labels(str(kind), key).inc()
    log.warning("external provider %s (%s): %s", key, kind, reason)
