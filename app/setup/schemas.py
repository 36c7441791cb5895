"""Bodies and payloads of the set-up."""

from marshmallow import Schema, fields

from app.setup.state import SetupState
from app.web.schema import RequestSchema, text

LONGEST_INPUT = 1024


class NewAccountSchema(RequestSchema):
    """POST /auth/setup and /auth/register."""

    username = text(LONGEST_INPUT)
    email = text(LONGEST_INPUT)
    password = text(LONGEST_INPUT)


class PublicStateData(Schema):
    """How far the installation is, and which ways in are open."""

    setup_state = fields.Enum(SetupState, by_value=True, required=True)
    has_users = fields.Boolean(required=True)
    allow_user_registration = fields.Boolean(required=True)
    passkey_login_enabled = fields.Boolean(required=True)
    password_login_enabled = fields.Boolean(required=True)
