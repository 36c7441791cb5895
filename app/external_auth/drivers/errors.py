"""Errors of providers that cannot be asked or cannot be trusted (spec 03 §7)."""

from app.core.error_codes import ErrorCode
from app.core.errors import BadRequest, Misconfigured, Unauthenticated


class ProviderRejected(Unauthenticated):
    """The provider refused, did not answer, or answered what cannot be believed.

    `reason` has no secrets; it is written to the log, but never shown to the browser.
    """

    code = ErrorCode.AUTH_CREDENTIALS_FAILED
    message = "The external sign-in failed."

    def __init__(self, reason: str = "it refused") -> None:
        super().__init__()
        self.reason = reason


class DiscoveryFailed(BadRequest):
    """The provider does not describe itself as it must.

    `reason` is for the log and for the administrator who tests the provider.
    """

    message = "OIDC discovery failed."

    def __init__(self, reason: str = "no answer", *, is_reason_public: bool = False) -> None:
        super().__init__(f"OIDC discovery failed: {reason}." if is_reason_public else None)
        self.reason = reason


class ProviderMisconfigured(Misconfigured):
    """The stored provider lacks what its kind needs.

    `reason` is for the log and for the administrator who tests the provider.
    """

    message = "The external provider is not configured completely."

    def __init__(
        self, reason: str = "something is missing", *, is_reason_public: bool = False
    ) -> None:
        super().__init__(f"{self.message[:-1]}: {reason}." if is_reason_public else None)
        self.reason = reason
