"""Errors of second factors."""

from app.core.access import PendingActivation
from app.core.errors import BadRequest, ErrorCode, Forbidden, NotFound, Unauthenticated
from app.crypto.secret_box import SecretUnreadable


class MfaCodeInvalid(Unauthenticated):
    """The code is malformed, wrong, or was accepted for this purpose before."""

    code = ErrorCode.AUTH_MFA_CODE_INVALID
    message = "The code is not correct."


class MfaRecoveryCodeUsed(Unauthenticated):
    """The code is one of the account's recovery codes, already used."""

    code = ErrorCode.AUTH_MFA_RECOVERY_CODE_USED
    message = "The recovery code has already been used."


class MfaFactorRequired(Unauthenticated):
    """The account cannot use this method now."""

    code = ErrorCode.AUTH_MFA_FACTOR_REQUIRED
    message = "This method is not available for the account."


class MfaFlowInvalid(Unauthenticated):
    """There is no such login waiting for a second factor, or no longer."""

    code = ErrorCode.AUTH_MFA_FLOW_INVALID
    message = "The sign-in is no longer valid. Sign in again."


class MfaFlowExpired(Unauthenticated):
    """The login waited too long for its second factor."""

    code = ErrorCode.AUTH_MFA_FLOW_EXPIRED
    message = "The sign-in took too long. Sign in again."


class MfaAttemptsExceeded(Unauthenticated):
    """The last attempt of this login was spent."""

    code = ErrorCode.AUTH_MFA_ATTEMPTS_EXCEEDED
    message = "Too many wrong codes. Sign in again."


class MfaEmailCodeRequired(Unauthenticated):
    """No code was sent for this login, or it is no longer valid."""

    code = ErrorCode.AUTH_MFA_EMAIL_CODE_REQUIRED
    message = "Request a code by e-mail first."


class MfaEmailCodeExpired(Unauthenticated):
    """The code that was sent is too old."""

    code = ErrorCode.AUTH_MFA_EMAIL_CODE_EXPIRED
    message = "The code has expired. Request another one."


class MfaFactorAlreadyExists(Forbidden):
    """The account has an authenticator app already."""

    code = ErrorCode.AUTH_MFA_FACTOR_ALREADY_EXISTS
    message = "An authenticator app is already set up."


class SetupInvalid(Unauthenticated):
    """There is no such setup, or no longer; the session is not affected."""

    code = ErrorCode.AUTH_TOKEN_INVALID
    message = "The setup is no longer valid. Start it again."


class SetupOfAnotherAccount(Forbidden):
    """The setup was started by somebody else."""

    message = "This setup belongs to another account."


class TotpCodeMalformed(BadRequest):
    """The code that is to finish a setup is not six digits."""

    message = "The code must have 6 digits."


class FactorNameTooLong(BadRequest):
    """The name of a factor is too long."""

    message = "The name must have at most 128 characters."


class FactorNotFound(NotFound):
    """No factor of this account has this id."""

    message = "There is no such factor."


FINISH_SETUP = (
    FactorNameTooLong,
    PendingActivation,
    MfaFactorAlreadyExists,
    SetupInvalid,
    SetupOfAnotherAccount,
    TotpCodeMalformed,
    MfaCodeInvalid,
)
# Of a code of the authenticator app or a recovery code that proves who changes the factors.
PROOF = (PendingActivation, MfaCodeInvalid, MfaRecoveryCodeUsed, SecretUnreadable)
