"""Request bodies and response data of invitations."""

from marshmallow import Schema, fields

from app.core.passwords import MAX_TYPED_PASSWORD_LENGTH
from app.users.schemas import PASSWORD_RULE, USERNAME_RULE
from app.web.schema import MAX_INPUT_LENGTH, RequestSchema, text


class AcceptInvitationSchema(RequestSchema):
    """POST /auth/invitations/{token}/accept."""

    username = text(MAX_INPUT_LENGTH, description=USERNAME_RULE)
    password = text(MAX_TYPED_PASSWORD_LENGTH, description=PASSWORD_RULE)


class InvitationData(Schema):
    """Who is invited, and until when."""

    email = fields.String(required=True)
    expires_at = fields.DateTime(required=True)
