"""Request bodies and response data of invitations."""

from marshmallow import Schema, fields

from app.core.passwords import MAX_TYPED_PASSWORD_LENGTH
from app.invitations.models import InvitationStatus
from app.users.schemas import PASSWORD_RULE, USERNAME_RULE
from app.web.schema import MAX_INPUT_LENGTH, RequestSchema, Timestamp, Word, text


class AcceptInvitationSchema(RequestSchema):
    """POST /auth/invitations/{token}/accept."""

    username = text(MAX_INPUT_LENGTH, description=USERNAME_RULE)
    password = text(MAX_TYPED_PASSWORD_LENGTH, description=PASSWORD_RULE)


class InvitationData(Schema):
    """Who is invited, and until when."""

    email = fields.String(required=True)
    expires_at = Timestamp(required=True)


class AdminInvitation(InvitationData):
    """The whole invitation, but not its token, which only its creation can show."""

    id = fields.Integer(required=True)
    status = Word(InvitationStatus)
    invited_by = fields.Integer(required=True, allow_none=True)
    accepted_user_id = fields.Integer(required=True, allow_none=True)
    created_at = Timestamp(required=True)
    updated_at = Timestamp(required=True)
    accepted_at = Timestamp(required=True, allow_none=True)
    revoked_at = Timestamp(required=True, allow_none=True)
    mail_queued = fields.Constant(False)


class MailedInvitation(AdminInvitation):
    """An invitation whose mail is on its way."""

    mail_queued = fields.Constant(True)
