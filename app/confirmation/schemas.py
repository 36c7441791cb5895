"""Request bodies and answers of confirmations."""

from typing import Any

from marshmallow import Schema, ValidationError, fields, validate, validates_schema

from app.confirmation.service import Method
from app.crypto.passwords import MAX_TYPED_PASSWORD_LENGTH
from app.web.schema import MAX_INPUT_LENGTH, RequestSchema, text

TYPED = (Method.PASSWORD.value, Method.EMAIL_CODE.value)


class ConfirmSchema(RequestSchema):
    """POST /auth/confirmation: a password and perhaps a code, or a mailed code."""

    method = fields.String(required=True, validate=validate.OneOf(TYPED))
    password = text(MAX_TYPED_PASSWORD_LENGTH, nullable=True)
    code = text(MAX_INPUT_LENGTH, nullable=True)

    @validates_schema
    def _require_what_the_method_needs(self, data: dict[str, Any], **_: Any) -> None:
        needed = "password" if data["method"] == Method.PASSWORD else "code"
        if data.get(needed) is None:
            raise ValidationError("is needed for this method", needed)


class ConfirmationData(Schema):
    """Whether the session is confirmed, and how to confirm it."""

    is_fresh = fields.Boolean(required=True)
    expires_in = fields.Integer(required=True)
    required_for_changes = fields.Boolean(required=True)
    methods = fields.List(fields.Enum(Method, by_value=True), required=True)
    needs_code = fields.Boolean(required=True)


class ConfirmedData(Schema):
    """For how many seconds the confirmation counts."""

    expires_in = fields.Integer(required=True)


class SentCodeData(Schema):
    """How long the mailed code is valid, and when another one can be had, in seconds."""

    expires_in = fields.Integer(required=True)
    resend_after = fields.Integer(required=True)
