"""Bodies and payloads of a login."""

from marshmallow import Schema, fields

from app.core.passwords import LONGEST_TYPED_PASSWORD
from app.login.service import LoginStatus
from app.web.schema import RequestSchema, text

LONGEST_IDENTIFIER = 1024


class LoginSchema(RequestSchema):
    """POST /auth/login."""

    identifier = text(LONGEST_IDENTIFIER)
    password = text(LONGEST_TYPED_PASSWORD)


class LoginData(Schema):
    """What the login led to; `expires_in` is the access token's life in seconds."""

    status = fields.Enum(LoginStatus, by_value=True, required=True)
    expires_in = fields.Integer(required=True)
