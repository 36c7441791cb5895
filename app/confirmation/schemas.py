"""Request bodies and answers of confirmations."""

from typing import Any

from marshmallow import ValidationError, fields, validate, validates_schema

from app.confirmation.service import Method
from app.crypto.passwords import MAX_TYPED_PASSWORD_LENGTH
from app.web.schema import MAX_INPUT_LENGTH, Answer, RequestSchema, text

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


class ConfirmationData(Answer):
    """Whether the session is confirmed, and how to confirm it."""

    is_fresh = fields.Boolean()
    expires_in = fields.Integer()
    required_for_changes = fields.Boolean()
    methods = fields.List(fields.Enum(Method, by_value=True))
    needs_code = fields.Boolean()


class ConfirmedData(Answer):
    """For how many seconds the confirmation counts."""

    expires_in = fields.Integer()


class SentCodeData(Answer):
    """How long the mailed code is valid, and when another one can be had, in seconds."""

    expires_in = fields.Integer()
    resend_after = fields.Integer()
