"""Queries, bodies and answers about one's own data."""

from marshmallow import fields, validate

from app.access_tokens.schemas import TokenInfo
from app.browsers.schemas import ExportedBrowser
from app.mail.models import MailStatus
from app.mfa.schemas import MfaFactor
from app.own_data.models import ArchiveFormat
from app.profile.schemas import Preferences
from app.sessions.schemas import SessionItem
from app.teams.models import TeamRole
from app.users.schemas import UserInfo
from app.web.paging import Clamped, Filter, Moment, PageQuery
from app.web.schema import MAX_INPUT_LENGTH, Answer, RequestSchema, Timestamp, Word, text

DEFAULT_LIMIT = 20
MAX_LIMIT = 100
WHO = ("me", "administrator", "system")


class ActivityQuery(PageQuery):
    """GET /auth/activity."""

    limit = Clamped(DEFAULT_LIMIT, 1, MAX_LIMIT)
    action = Filter()
    since = Moment("inclusive", load_default=None, data_key="after")
    until = Moment("exclusive", load_default=None, data_key="before")


class ActivityItem(Answer):
    """What happened; address and agent are those of the owner, and of nobody else."""

    id = fields.Integer()
    action = fields.String()
    at = Timestamp()
    by = fields.String(validate=validate.OneOf(WHO))
    entity_type = fields.String()
    entity_name = fields.String(allow_none=True)
    details = fields.Dict(keys=fields.String())
    ip_address = fields.String(allow_none=True)
    user_agent = fields.String(allow_none=True)


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


class ExportedPasskey(Answer):
    """A passkey, without its keys."""

    id = fields.Integer()
    name = fields.String()
    transports = fields.List(fields.String(), allow_none=True, attribute="transport_names")
    created_at = Timestamp()
    last_used_at = Timestamp(allow_none=True)


class ExportedIdentity(Answer):
    """An identity at a provider that can sign in to the account."""

    provider = fields.String(attribute="provider.key")
    issuer = fields.String(attribute="identity_namespace")
    subject = fields.String()
    email = fields.String(allow_none=True, attribute="email_snapshot")
    display_name = fields.String(allow_none=True, attribute="display_name_snapshot")
    created_at = Timestamp()
    last_login_at = Timestamp(allow_none=True)


class ExportedTeam(Answer):
    """A team that the account is in."""

    id = fields.Integer()
    name = fields.String()
    role = Word(TeamRole)
    since = Timestamp()


class ExportedInvitation(Answer):
    """The invitation by which the account came."""

    email = fields.String()
    created_at = Timestamp()
    accepted_at = Timestamp(allow_none=True)


class ExportedMail(Answer):
    """A mail to the account's address; finished ones are known for a week."""

    template = fields.String()
    status = Word(MailStatus)
    created_at = Timestamp()
    finished_at = Timestamp(allow_none=True)


class ExportData(Answer):
    """Everything that is stored about the account and is not secret."""

    schema_version = fields.Integer()
    generated_at = Timestamp()
    service = fields.String()
    account = fields.Nested(UserInfo)
    preferences = fields.Nested(Preferences, allow_none=True)
    sessions = fields.List(fields.Nested(ExportedSession))
    browsers = fields.List(fields.Nested(ExportedBrowser))
    second_factors = fields.List(fields.Nested(MfaFactor))
    recovery_codes_remaining = fields.Integer()
    tokens = fields.List(fields.Nested(TokenInfo))
    passkeys = fields.List(fields.Nested(ExportedPasskey))
    external_identities = fields.List(fields.Nested(ExportedIdentity))
    teams = fields.List(fields.Nested(ExportedTeam))
    invitation = fields.Nested(ExportedInvitation, allow_none=True)
    mails = fields.List(fields.Nested(ExportedMail))
    activity = fields.List(fields.Nested(ActivityItem))
