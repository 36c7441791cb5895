"""Queries, bodies and answers about one's own data."""

from marshmallow import Schema, fields, validate

from app.mail.models import MailStatus
from app.mfa.schemas import MfaFactor
from app.own_data.models import ArchiveFormat
from app.profile.schemas import Preferences
from app.sessions.schemas import SessionItem
from app.teams.models import TeamRole
from app.users.schemas import UserInfo
from app.web.paging import Clamped, Filter, Moment, PageQuery
from app.web.schema import MAX_INPUT_LENGTH, RequestSchema, Timestamp, Word, text

DEFAULT_LIMIT = 20
MAX_LIMIT = 100
WHO = ("me", "administrator", "system")


class ActivityQuery(PageQuery):
    """GET /auth/activity."""

    limit = Clamped(DEFAULT_LIMIT, 1, MAX_LIMIT)
    action = Filter()
    since = Moment("inclusive", load_default=None, data_key="after")
    until = Moment("exclusive", load_default=None, data_key="before")


class ActivityItem(Schema):
    """What happened; address and agent are those of the owner, and of nobody else."""

    id = fields.Integer(required=True)
    action = fields.String(required=True)
    at = Timestamp(required=True)
    by = fields.String(required=True, validate=validate.OneOf(WHO))
    entity_type = fields.String(required=True)
    entity_name = fields.String(required=True, allow_none=True)
    details = fields.Dict(keys=fields.String(), required=True)
    ip_address = fields.String(required=True, allow_none=True)
    user_agent = fields.String(required=True, allow_none=True)


class DeleteAccountSchema(RequestSchema):
    """DELETE /auth/account."""

    confirm = text(MAX_INPUT_LENGTH, description="the username")


class ExportQuery(RequestSchema):
    """GET /auth/export."""

    kind = fields.Enum(
        ArchiveFormat, by_value=True, load_default=ArchiveFormat.JSON, data_key="format"
    )


class ExportedSession(SessionItem):
    """One live session."""

    class Meta:
        """Marshmallow's settings."""

        exclude = ("is_current",)


class ExportedPasskey(Schema):
    """A passkey, without its keys."""

    id = fields.Integer(required=True)
    name = fields.String(required=True)
    transports = fields.List(
        fields.String(), required=True, allow_none=True, attribute="transport_names"
    )
    created_at = Timestamp(required=True)
    last_used_at = Timestamp(required=True, allow_none=True)


class ExportedIdentity(Schema):
    """An identity at a provider that can sign in to the account."""

    provider = fields.String(required=True, attribute="provider.key")
    issuer = fields.String(required=True, attribute="identity_namespace")
    subject = fields.String(required=True)
    email = fields.String(required=True, allow_none=True, attribute="email_snapshot")
    display_name = fields.String(required=True, allow_none=True, attribute="display_name_snapshot")
    created_at = Timestamp(required=True)
    last_login_at = Timestamp(required=True, allow_none=True)


class ExportedTeam(Schema):
    """A team that the account is in."""

    id = fields.Integer(required=True)
    name = fields.String(required=True)
    role = Word(TeamRole)
    since = Timestamp(required=True)


class ExportedInvitation(Schema):
    """The invitation by which the account came."""

    email = fields.String(required=True)
    created_at = Timestamp(required=True)
    accepted_at = Timestamp(required=True, allow_none=True)


class ExportedMail(Schema):
    """A mail to the account's address; finished ones are known for a week."""

    template = fields.String(required=True)
    status = Word(MailStatus)
    created_at = Timestamp(required=True)
    finished_at = Timestamp(required=True, allow_none=True)


class ExportData(Schema):
    """Everything that is stored about the account and is not secret."""

    schema_version = fields.Integer(required=True)
    generated_at = Timestamp(required=True)
    service = fields.String(required=True)
    account = fields.Nested(UserInfo, required=True)
    preferences = fields.Nested(Preferences, required=True, allow_none=True)
    sessions = fields.List(fields.Nested(ExportedSession), required=True)
    second_factors = fields.List(fields.Nested(MfaFactor), required=True)
    recovery_codes_remaining = fields.Integer(required=True)
    passkeys = fields.List(fields.Nested(ExportedPasskey), required=True)
    external_identities = fields.List(fields.Nested(ExportedIdentity), required=True)
    teams = fields.List(fields.Nested(ExportedTeam), required=True)
    invitation = fields.Nested(ExportedInvitation, required=True, allow_none=True)
    mails = fields.List(fields.Nested(ExportedMail), required=True)
    activity = fields.List(fields.Nested(ActivityItem), required=True)
