"""Errors of a login, and of removing the last way to sign in."""

from app.core.access import (
    AccountDisabled,
    PendingActivation,
)
from app.core.errors import Conflict, ErrorCode, Forbidden, Unauthenticated
from app.crypto.secret_box import SecretUnreadable
from app.mail.errors import MailDeliveryFailed, MailNotConfigured
from app.mfa.errors import (
    MfaAttemptsExceeded,
    MfaCodeInvalid,
    MfaEmailCodeExpired,
    MfaEmailCodeRequired,
    MfaFactorRequired,
    MfaFlowExpired,
    MfaFlowInvalid,
    MfaRecoveryCodeUsed,
)


class CredentialsFailed(Unauthenticated):
    """The account is unknown, or the password wrong or missing; the answer never says which."""

    code = ErrorCode.AUTH_CREDENTIALS_FAILED
    message = "The identifier or the password is not correct."


class PasswordLoginDisabled(Forbidden):
    """Passwords are switched off for this installation."""

    code = ErrorCode.AUTH_PASSWORD_LOGIN_DISABLED
    message = "Password login is disabled."


class LastWayIn(Conflict):
    """Nobody could sign in to the account any more."""

    message = "This is the only way to sign in to the account."


LOGIN = (PasswordLoginDisabled, CredentialsFailed, AccountDisabled, PendingActivation)
CHALLENGE = (MfaFlowInvalid, MfaFlowExpired, AccountDisabled, PendingActivation, MfaFactorRequired)
SEND_CODE = (*CHALLENGE, MailNotConfigured, MailDeliveryFailed)
VERIFY = (
    *CHALLENGE,
    PasswordLoginDisabled,
    MfaEmailCodeRequired,
    MfaEmailCodeExpired,
    MfaCodeInvalid,
    MfaRecoveryCodeUsed,
    MfaAttemptsExceeded,
    SecretUnreadable,
)
