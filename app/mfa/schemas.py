"""Request bodies and payloads of managing second factors."""

from typing import Any

from marshmallow import Schema, fields

from app.mfa.models import MfaMethod
from app.web.schema import MAX_INPUT_LENGTH, RequestSchema, Timestamp, Word, example_metadata, text

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


class MfaFactor(Schema):
    """One enabled factor."""

    id = fields.Integer(required=True)
    method = Word(MfaMethod)
    name = fields.String(required=True)
    enabled_at = Timestamp(required=True)
    last_used_at = Timestamp(required=True, allow_none=True)


class MfaData(Schema):
    """The second factors of the account."""

    enabled = fields.Boolean(required=True)
    factors = fields.List(fields.Nested(MfaFactor), required=True)
    recovery_codes_remaining = fields.Integer(required=True)


class StartedTotpSetupData(Schema):
    """What an authenticator app needs; `expires_in` is in seconds."""

    flow_token = fields.String(required=True, metadata=example_metadata(SETUP_TOKEN))
    expires_in = fields.Integer(required=True, metadata=example_metadata(300))
    secret = fields.String(required=True)
    otpauth_uri = fields.String(required=True)


class FinishedTotpSetupData(Schema):
    """The new factor, and recovery codes that are shown only now."""

    factor = fields.Nested(MfaFactor, required=True)
    recovery_codes = fields.List(RecoveryCode(), required=True)
