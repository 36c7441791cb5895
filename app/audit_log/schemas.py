"""Queries and answers about the audit log."""

from marshmallow import fields

from app.audit.models import Action, Actor, EntityType
from app.audit.queries import SORT_COLUMNS as AUDIT_COLUMNS
from app.audit_log.export import ExportFormat
from app.teams.models import TeamRole
from app.users.schemas import UserSummary
from app.web.paging import (
    DEFAULT_LIMIT,
    Clamped,
    Filter,
    Moment,
    NumberFilter,
    PageQuery,
    sort_by,
    sort_order,
)
from app.web.schema import Answer, RequestSchema, Timestamp, Word

MAX_AUDIT_LIMIT = 200
TEAM_COLUMNS = ("id", "created_at", "user_id", "action")


class AuditPageQuery(PageQuery):
    """GET /admin/users/{id}/audit-logs."""

    limit = Clamped(DEFAULT_LIMIT, 1, MAX_AUDIT_LIMIT)
    sort_by = sort_by(tuple(AUDIT_COLUMNS), "created_at")
    sort_order = sort_order()


class TeamAuditQuery(AuditPageQuery):
    """GET /admin/teams/{id}/audit-logs and /teams/{id}/audit-logs."""

    # Not by address: an order would tell what is not shown.
    sort_by = sort_by(TEAM_COLUMNS, "created_at")
    user_id = NumberFilter("who acted; 0 is the system, the command line or nobody known", least=0)
    action = Filter()
    since = Moment("inclusive", load_default=None, data_key="after")
    until = Moment("exclusive", load_default=None, data_key="before")


class AuditQuery(TeamAuditQuery):
    """GET /admin/audit-logs."""

    sort_by = sort_by(tuple(AUDIT_COLUMNS), "created_at")
    actor = fields.Enum(Actor, by_value=True, load_default=None)
    entity_type = Filter()
    entity_id = NumberFilter()
    keyword = Filter("part of the name of what an entry is about")
    ip_address = Filter()


class TeamAuditExportQuery(TeamAuditQuery):
    """GET /admin/teams/{id}/audit-logs/export and /teams/{id}/audit-logs/export."""

    class Meta(RequestSchema.Meta):
        """Marshmallow's settings."""

        exclude = ("limit", "offset")

    kind = fields.Enum(
        ExportFormat, by_value=True, load_default=ExportFormat.CSV, data_key="format"
    )


class AuditExportQuery(TeamAuditExportQuery, AuditQuery):
    """GET /admin/audit-logs/export."""

    sort_by = sort_by(tuple(AUDIT_COLUMNS), "created_at")


class AuditItem(Answer):
    """An entry; `details` is JSON as text, `user` is who acted, null if that account is gone."""

    id = fields.Integer()
    user = fields.Nested(UserSummary, allow_none=True)
    user_id = fields.Integer()
    action = fields.String()
    entity_type = fields.String()
    entity_id = fields.Integer(allow_none=True)
    entity_name = fields.String(allow_none=True)
    details = fields.String(allow_none=True)
    ip_address = fields.String(allow_none=True)
    user_agent = fields.String(allow_none=True)
    created_at = Timestamp()


class PresentationMessage(Answer):
    """A message that pages have words for: team_member_add, _update or _remove."""

    code = fields.String(metadata={"examples": ["team_member_add"]})


class AuditPresentation(Answer):
    """How pages may put an entry into words."""

    summary = fields.Nested(PresentationMessage)


class TeamAuditItem(Answer):
    """An entry about a team; the roles of a new member, or of one whose role was changed."""

    id = fields.Integer()
    team_id = fields.Integer(attribute="entity_id")
    action = fields.String()
    actor = fields.Nested(UserSummary, allow_none=True, attribute="user")
    created_at = Timestamp()
    member = fields.Nested(UserSummary, allow_none=True)
    role = Word(TeamRole, allow_none=True)
    previous_role = Word(TeamRole, allow_none=True)
    next_role = Word(TeamRole, allow_none=True)
    presentation = fields.Nested(AuditPresentation, allow_none=True)


class AuditActionItem(Answer):
    """An action that the audit log knows."""

    action = Word(Action)
    entity_type = Word(EntityType)
    is_recorded = fields.Boolean()
    count_30d = fields.Integer()
