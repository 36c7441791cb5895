"""Refusals of second factors (spec 02 §1; decisions A15 to A17)."""

from app.core.error_codes import ErrorCode
from app.core.errors import BadRequest, Forbidden, NotFound, Unauthenticated


class MfaCodeInvalid(Unauthenticated):
    """The code is malformed, wrong, or was accepted for this purpose before."""

    code = ErrorCode.AUTH_MFA_CODE_INVALID
    message = "The code is not correct."


class MfaRecoveryCodeUsed(Unauthenticated):
    """It is one of the account's recovery codes, and spent (decision A16)."""

    code = ErrorCode.AUTH_MFA_RECOVERY_CODE_USED
    message = "The recovery code was used before."


class MfaFactorRequired(Unauthenticated):
    """The account cannot use this method now."""

    code = ErrorCode.AUTH_MFA_FACTOR_REQUIRED
    message = "This method is not available for the account."


class MfaFlowInvalid(Unauthenticated):
    """There is no such login waiting for a second factor, or not any more."""

    code = ErrorCode.AUTH_MFA_FLOW_INVALID
    message = "The sign-in is not valid any more. Sign in again."


class MfaFlowExpired(Unauthenticated):
    """The login waited too long for its second factor."""

    code = ErrorCode.AUTH_MFA_FLOW_EXPIRED
    message = "The sign-in took too long. Sign in again."


class MfaAttemptsExceeded(Unauthenticated):
    """The last attempt of this login was spent (decision A17)."""

    code = ErrorCode.AUTH_MFA_ATTEMPTS_EXCEEDED
    message = "Too many wrong codes. Sign in again."


class MfaEmailCodeRequired(Unauthenticated):
    """No code was sent for this login, or it is not valid any more."""

    code = ErrorCode.AUTH_MFA_EMAIL_CODE_REQUIRED
    message = "Have a code sent by e-mail first."


class MfaEmailCodeExpired(Unauthenticated):
    """The code that was sent is too old."""

    code = ErrorCode.AUTH_MFA_EMAIL_CODE_EXPIRED
    message = "The code has expired. Have another one sent."


class MfaFactorAlreadyExists(Forbidden):
    """The account has an authenticator app already."""

    code = ErrorCode.AUTH_MFA_FACTOR_ALREADY_EXISTS
    message = "An authenticator app is set up already."


class SetupInvalid(Unauthenticated):
    """There is no such setup, or not any more; the session is none the worse (spec 02 §1.6)."""

    code = ErrorCode.AUTH_TOKEN_INVALID
    message = "The setup is not valid any more. Start it again."


class SetupOfAnotherAccount(Forbidden):
    """The setup was started by somebody else."""

    message = "This setup belongs to another account."


class TotpCodeMalformed(BadRequest):
    """What finishes a setup is not six digits."""

    message = "The code must have 6 digits."


class FactorNameTooLong(BadRequest):
    """The name of a factor does not fit."""

    message = "The name must have at most 128 characters."


class FactorNotFound(NotFound):
    """No factor of this account has this id."""

    message = "There is no such factor."
