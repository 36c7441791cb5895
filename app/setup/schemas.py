"""Responses of the set-up; its request body is that of any new account."""

from marshmallow import Schema, fields

from app.setup.queries import SetupState
from app.web.schema import Word


class PublicStateData(Schema):
    """How far the installation is set up, and which ways in are open."""

    setup_state = Word(SetupState)
    has_users = fields.Boolean(required=True)
    allow_user_registration = fields.Boolean(required=True)
    passkey_login_enabled = fields.Boolean(required=True)
    password_login_enabled = fields.Boolean(required=True)
