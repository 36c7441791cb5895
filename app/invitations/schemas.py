"""Request bodies and response data of invitations."""

from typing import Any

from marshmallow import fields, validate

from app.crypto.passwords import MAX_TYPED_PASSWORD_LENGTH
from app.invitations.models import InvitationStatus
from app.settings import keys
from app.users.schemas import EMAIL_RULE, PASSWORD_RULE, USERNAME_RULE
from app.web.paging import Clamped, Filter, PageQuery
from app.web.schema import (
    MAX_INPUT_LENGTH,
    Answer,
    RequestSchema,
    Timestamp,
    WholeNumber,
    Word,
    example_metadata,
    text,
)

DEFAULT_LIMIT, MAX_LIMIT = 20, 100
MIN_TTL_SECONDS = 60


class AcceptInvitationSchema(RequestSchema):
    """POST /auth/invitations/{token}/accept."""

    username = text(MAX_INPUT_LENGTH, **USERNAME_RULE)
    password = text(MAX_TYPED_PASSWORD_LENGTH, **PASSWORD_RULE)


class CreateInvitationSchema(RequestSchema):
    """POST /admin/users/invitations."""

    email = text(MAX_INPUT_LENGTH, **EMAIL_RULE)
    ttl_seconds = WholeNumber(
        load_default=None,
        allow_none=False,
        data_key="ttl_secs",
        validate=validate.Range(MIN_TTL_SECONDS, keys.YEAR),
        metadata={"description": "how long it is valid; auth_user_invitation_ttl_secs by default"},
    )


class InvitationListQuery(PageQuery):
    """GET /admin/users/invitations."""

    limit = Clamped(DEFAULT_LIMIT, 1, MAX_LIMIT)
    status = fields.Enum(InvitationStatus, by_value=True, load_default=None)
    keyword = Filter("part of an address; an id")


class InvitationData(Answer):
    """Who is invited, and until when."""

    email = fields.String()
    expires_at = Timestamp()


class AdminInvitation(InvitationData):
    """The whole invitation, but not its token, which only its creation can show.

    Lists have the username of whoever sent it as well.
    """

    optional = frozenset({"invited_by_username"})

    id = fields.Integer()
    status = Word(InvitationStatus)
    invited_by = fields.Integer(allow_none=True)
    invited_by_username = fields.String(allow_none=True)
    accepted_user_id = fields.Integer(allow_none=True)
    created_at = Timestamp()
    updated_at = Timestamp()
    accepted_at = Timestamp(allow_none=True)
    revoked_at = Timestamp(allow_none=True)
    mail_queued = fields.Constant(False)

    def get_attribute(self, obj: Any, attr: str, default: Any) -> Any:
        """Return what is told beside the invitation, or else what is of the invitation itself."""
        source = obj if hasattr(obj, attr) else getattr(obj, "invitation", obj)
        return super().get_attribute(source, attr, default)


class MailedInvitation(AdminInvitation):
    """An invitation whose mail is on its way."""

    mail_queued = fields.Constant(True)


class CreatedInvitationData(MailedInvitation):
    """A new invitation; its link is shown only here, and mailed."""

    invitation_url = fields.String(
        attribute="url", metadata=example_metadata("https://files.example/invite/0f9d3c5be2a14876")
    )
