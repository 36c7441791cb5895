"""What all drivers have in common; they report why a sign-in failed, which no browser is told."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

import requests
from prometheus_client import Counter

from app.core.http_client import HttpClient
from app.external_auth.drivers.interface import (
    Authorization,
    Callback,
    ExternalProfile,
    ProviderConfig,
    TestResult,
)
from app.external_auth.drivers.json_responses import transport_reason
from app.external_auth.errors import DiscoveryFailed, ProviderMisconfigured, ProviderRejected
from app.external_auth.kinds import ProviderKind

P = ParamSpec("P")
T = TypeVar("T")
D = TypeVar("D", bound="Driver")

log = logging.getLogger(__name__)

FAILURES = Counter(
    "external_auth_failures_total",
    "Sign-ins that failed at the provider.",
    ["kind", "provider"],
)


def report(key: str, kind: ProviderKind, reason: str) -> None:
    """Log why a provider cannot be used, and count it."""
    FAILURES.labels(str(kind), key).inc()
    log.warning("external provider %s (%s): %s", key, kind, reason)


def reported(method: Callable[Concatenate[D, P], T]) -> Callable[Concatenate[D, P], T]:
    """Report the failures of a driver's method; those of the transport become ProviderRejected."""

    @wraps(method)
    def call(driver: D, /, *arguments: P.args, **keywords: P.kwargs) -> T:
        provider = driver.provider
        try:
            return method(driver, *arguments, **keywords)
        except requests.RequestException as error:
            rejected = ProviderRejected(transport_reason(error))
            report(provider.key, provider.provider_kind, rejected.reason)
            raise rejected from None
        except (ProviderRejected, DiscoveryFailed, ProviderMisconfigured) as error:
            report(provider.key, provider.provider_kind, error.reason)
            raise

    return call


class Driver(ABC):
    """Talks to one provider."""

    def __init__(self, provider: ProviderConfig, http_client: HttpClient) -> None:
        self.provider = provider
        self.http_client = http_client

    @abstractmethod
    def authorize(self, redirect_uri: str) -> Authorization:
        """Prepare a sign-in.

        Raises: DiscoveryFailed, ProviderMisconfigured.
        """

    @abstractmethod
    def identify(self, callback: Callback) -> ExternalProfile:
        """Exchange the code, and return the user that it was issued for.

        Raises: ProviderRejected, DiscoveryFailed, ProviderMisconfigured.
        """

    @abstractmethod
    def namespace(self) -> str | None:
        """Return the namespace of the provider's subjects; None if it varies by user.

        In a profile it may have a trailing slash. Raises: ProviderMisconfigured.
        """

    @abstractmethod
    def may_assert(self, namespace: str) -> bool:
        """Return whether the provider may assert identities of this namespace.

        Raises: ProviderMisconfigured.
        """

    @abstractmethod
    def test(self) -> TestResult:
        """Check whether the provider is usable, as far as possible without a sign-in.

        Raises: DiscoveryFailed, ProviderMisconfigured.
        """
