"""Responses of the set-up; its request body is that of any new account."""

from marshmallow import fields

from app.setup.queries import SetupState
from app.web.schema import Answer, Word


class PublicStateData(Answer):
    """How far the installation is set up, and which ways in are open."""

    setup_state = Word(SetupState)
    has_users = fields.Boolean()
    allow_user_registration = fields.Boolean()
    passkey_login_enabled = fields.Boolean()
    password_login_enabled = fields.Boolean()
    email_code_sign_in_enabled = fields.Boolean()
