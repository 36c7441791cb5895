"""Request bodies and response data of invitations."""

from marshmallow import Schema, fields

from app.core.passwords import LONGEST_TYPED_PASSWORD
from app.users.schemas import PASSWORD_RULE, USERNAME_RULE
from app.web.schema import LONGEST_INPUT, RequestSchema, text


class AcceptInvitationSchema(RequestSchema):
    """POST /auth/invitations/{token}/accept."""

    username = text(LONGEST_INPUT, description=USERNAME_RULE)
    password = text(LONGEST_TYPED_PASSWORD, description=PASSWORD_RULE)


class InvitationData(Schema):
    """Who is invited, and until when."""

    email = fields.String(required=True)
    expires_at = fields.DateTime(required=True)
