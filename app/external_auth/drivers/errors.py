"""Why a provider could not be asked, or was not believed (spec 03 §7)."""

from app.core.error_codes import ErrorCode
from app.core.errors import BadRequest, Misconfigured, Unauthenticated


class ProviderRejected(Unauthenticated):
    """The provider refused, did not answer, or answered what cannot be believed.

    The log says what it was; the browser is not told.
    """

    code = ErrorCode.AUTH_CREDENTIALS_FAILED
    message = "The external sign-in failed."


class DiscoveryFailed(BadRequest):
    """The provider does not describe itself as it must."""

    message = "OIDC discovery failed."


class ProviderMisconfigured(Misconfigured):
    """The stored provider lacks what its kind needs."""

    message = "The external provider is not configured completely."
