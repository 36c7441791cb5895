"""Errors of confirmations."""

from app.core.access import AccountDisabled
from app.core.errors import BadRequest
from app.login.errors import CredentialsFailed
from app.mail.errors import MailDeliveryFailed, MailNotConfigured
from app.mfa.errors import (
    MfaCodeInvalid,
    MfaEmailCodeExpired,
    MfaEmailCodeRequired,
    MfaRecoveryCodeUsed,
)
from app.passkeys.errors import (
    CredentialMalformed,
    FlowInvalid,
    PasskeyRefused,
    PasskeyUnknown,
    PublicSiteUrlInvalid,
    PublicSiteUrlRequired,
)


class MethodNotOffered(BadRequest):
    """The account cannot confirm in this way."""

    message = "This account cannot confirm in this way."


CONFIRM = (
    MethodNotOffered,
    CredentialsFailed,
    MfaCodeInvalid,
    MfaRecoveryCodeUsed,
    MfaEmailCodeRequired,
    MfaEmailCodeExpired,
    AccountDisabled,
)
SEND_CODE = (MethodNotOffered, MailNotConfigured, MailDeliveryFailed)
START_PASSKEY = (MethodNotOffered, PublicSiteUrlRequired, PublicSiteUrlInvalid)
FINISH_PASSKEY = (
    PublicSiteUrlRequired,
    PublicSiteUrlInvalid,
    FlowInvalid,
    CredentialMalformed,
    PasskeyRefused,
    PasskeyUnknown,
)
