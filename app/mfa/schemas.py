"""Request bodies and payloads of managing second factors."""

from typing import Any

from marshmallow import fields

from app.mfa.models import MfaMethod
from app.web.schema import (
    MAX_INPUT_LENGTH,
    Answer,
    RequestSchema,
    Timestamp,
    Word,
    example_metadata,
    text,
)

SETUP_TOKEN = "mfs_0f9d3c5be2a14876b1c0d4e8f7a69352"


class FinishTotpSetupSchema(RequestSchema):
    """POST /auth/mfa/totp/setup/finish."""

    flow_token = text(MAX_INPUT_LENGTH, example=SETUP_TOKEN)
    code = text(MAX_INPUT_LENGTH)
    name = text(MAX_INPUT_LENGTH, nullable=True)


class SecondFactorProofSchema(RequestSchema):
    """A code from the authenticator app, or an unused recovery code."""

    code = text(MAX_INPUT_LENGTH, nullable=True)


class RecoveryCode(fields.String):
    """One code, as it is shown to its owner once."""

    def __init__(self, **options: Any) -> None:
        super().__init__(metadata=example_metadata("4KXQ-7TPM-2WRD"), **options)


class MfaFactor(Answer):
    """One enabled factor."""

    id = fields.Integer()
    method = Word(MfaMethod)
    name = fields.String()
    enabled_at = Timestamp()
    last_used_at = Timestamp(allow_none=True)


class MfaData(Answer):
    """The second factors of the account."""

    enabled = fields.Boolean()
    factors = fields.List(fields.Nested(MfaFactor))
    recovery_codes_remaining = fields.Integer()


class StartedTotpSetupData(Answer):
    """What an authenticator app needs; `expires_in` is in seconds."""

    flow_token = fields.String(metadata=example_metadata(SETUP_TOKEN))
    expires_in = fields.Integer(metadata=example_metadata(300))
    secret = fields.String()
    otpauth_uri = fields.String()


class FinishedTotpSetupData(Answer):
    """The new factor, and recovery codes that are shown only now."""

    factor = fields.Nested(MfaFactor)
    recovery_codes = fields.List(RecoveryCode())
