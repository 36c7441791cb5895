"""Errors of external sign-in, and which of them each use case answers with."""

from app.confirmation.errors import MethodNotOffered
from app.contact_verification.errors import ContactVerificationInvalid
from app.core.access import (
    AccountDisabled,
    PendingActivation,
)
from app.core.errors import (
    AppError,
    BadRequest,
    Conflict,
    ErrorCode,
    Forbidden,
    Misconfigured,
    NotFound,
    Unauthenticated,
)
from app.login.errors import CredentialsFailed, LastWayIn, PasswordLoginDisabled
from app.registration.errors import RegistrationDisabled
from app.users.errors import EmailInvalid


class KindUnknown(NotFound):
    """There is no such kind of provider."""

    message = "There is no such kind of provider."


class ProviderKeyInvalid(BadRequest):
    """What names the provider cannot be a provider's key."""

    message = 'A provider key has 2 to 64 letters a-z, digits or inner hyphens, and is not "new".'


class ProviderNotFound(NotFound):
    """No provider of this kind has this key."""

    message = "There is no such provider."


class ProviderDisabled(Forbidden):
    """The provider exists, but nobody may sign in with it now."""

    code = ErrorCode.EXTERNAL_AUTH_PROVIDER_DISABLED
    message = "This provider is disabled."


class ReturnPathInvalid(BadRequest):
    """The path to return to is not one of this site."""

    message = "return_path must be a path on this site of at most 2048 bytes."


class CallbackAddressMissing(BadRequest):
    """Without the site's address the provider cannot be told where to send the browser back."""

    code = ErrorCode.EXTERNAL_AUTH_CALLBACK_REDIRECT_URI_REQUIRED
    message = "public_site_url is not set, so there is no address to come back to."


class SignInFailed(Unauthenticated):
    """The browser did not come back as it should: wrong state, cookie, answer or provider."""

    code = ErrorCode.AUTH_CREDENTIALS_FAILED
    message = "The external sign-in failed."


class PolicyDenied(Forbidden):
    """The provider's rules, or the identity's owner, forbid it."""

    code = ErrorCode.EXTERNAL_AUTH_POLICY_DENIED
    message = "This identity may not be used here."


class LinkConflict(Conflict):
    """The account is linked to another identity of this provider."""

    message = "The account is already linked to another identity of this provider."


class IdentityTaken(Conflict):
    """The identity is linked to another account."""

    message = "This identity is linked to another account."


class LinkNotFound(NotFound):
    """No link of this account has this id."""

    message = "There is no such link."


class FlowTokenInvalid(BadRequest):
    """The text cannot be a flow token."""

    message = "flow_token is not valid."


class PasswordMissing(BadRequest):
    """Identifier or password is empty."""

    message = "identifier and password must not be empty."


class UsernamesTaken(BadRequest):
    """No free username was found for the new account."""

    message = "No free username was found for the account. Register with one that you choose."


class ProviderInvalid(BadRequest):
    """A value of a provider breaks a rule; the message names it."""

    message = "The provider is not valid."


class ProviderExists(Conflict):
    """Another provider of this kind has this key."""

    message = "There is already a provider of this kind with this key."


class ProviderAmbiguous(Conflict):
    """Providers of several kinds have this key."""

    message = "Providers of several kinds have this key. Write KIND/KEY to say which one you mean."


class LastProvider(Forbidden):
    """Nobody could sign in any more."""

    message = "Passwords and passkeys are switched off, so the last provider must stay enabled."


class ProviderNeeded(Conflict):
    """Accounts could not sign in any more; the message says how many."""

    message = "Some accounts can sign in only with this provider."


class ProviderChanged(Conflict):
    """The provider is not as it was when the change was decided on."""

    message = "The provider has been changed meanwhile."


class ProviderTestFailed(BadRequest):
    """The test of a provider failed; the message says why."""

    message = "The provider cannot be used."


class ProviderFailed(AppError):
    """A provider cannot be used.

    `reason` has no secrets; it is for the log and for the administrator who tests the provider.
    """

    def __init__(self, reason: str, *, is_reason_public: bool = False) -> None:
        super().__init__(f"{self.message[:-1]}: {reason}." if is_reason_public else None)
        self.reason = reason


class ProviderRejected(ProviderFailed, Unauthenticated):
    """The provider refused, did not answer, or answered what cannot be believed."""

    code = ErrorCode.AUTH_CREDENTIALS_FAILED
    message = "The external sign-in failed."


class DiscoveryFailed(ProviderFailed, BadRequest):
    """The provider does not describe itself as it must."""

    message = "OIDC discovery failed."


class ProviderMisconfigured(ProviderFailed, Misconfigured):
    """The stored provider lacks what its kind needs."""

    message = "The external provider is not fully configured."


START = (
    KindUnknown,
    ProviderKeyInvalid,
    ProviderNotFound,
    ProviderDisabled,
    ReturnPathInvalid,
    CallbackAddressMissing,
    MethodNotOffered,
    DiscoveryFailed,
    ProviderMisconfigured,
)
REQUEST_MAIL = (
    FlowTokenInvalid,
    EmailInvalid,
    ContactVerificationInvalid,
    ProviderDisabled,
    PolicyDenied,
    AccountDisabled,
    PendingActivation,
    RegistrationDisabled,
)
LINK_BY_PASSWORD = (
    PasswordLoginDisabled,
    FlowTokenInvalid,
    PasswordMissing,
    ContactVerificationInvalid,
    ProviderDisabled,
    CredentialsFailed,
    AccountDisabled,
    PendingActivation,
    PolicyDenied,
    LinkConflict,
)
REMOVE_LINK = (LinkNotFound, LastWayIn)
ADD_PROVIDER = (ProviderKeyInvalid, ProviderInvalid, ProviderExists)
UPDATE_PROVIDER = (ProviderNotFound, ProviderChanged, ProviderInvalid, LastProvider)
REMOVE_PROVIDER = (ProviderNotFound, LastProvider, ProviderNeeded)
TEST_PROVIDER = (ProviderNotFound, DiscoveryFailed, ProviderTestFailed)
TEST_DRAFT = (ProviderInvalid, DiscoveryFailed, ProviderTestFailed)
