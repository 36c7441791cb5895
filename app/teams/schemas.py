"""What requests, answers and commands show of teams."""

from typing import Any

from marshmallow import ValidationError, fields, validate, validates_schema

from app.teams.models import MAX_DESCRIPTION_LENGTH, MAX_NAME_LENGTH, TeamRole
from app.teams.queries import MEMBER_COLUMNS, TEAM_COLUMNS
from app.users.models import MAX_QUOTA_BYTES, Status
from app.users.schemas import UserSummary
from app.web.paging import MAX_LIMIT, Clamped, Filter, Moment, PageQuery, sort_by, sort_order
from app.web.schema import (
    INT64,
    MAX_INPUT_LENGTH,
    Answer,
    RequestSchema,
    Text,
    Timestamp,
    WholeNumber,
    Word,
    text,
)

NAME_RULE = f"1 to {MAX_NAME_LENGTH} characters"
IDENTIFIER_RULE = "a username or an address"


class MemberData(Answer):
    """A member; `created_at` is when the account joined."""

    user_id = fields.Integer()
    username = fields.String()
    email = fields.String()
    role = fields.String()
    created_at = Timestamp()


class TeamData(Answer):
    """A team."""

    id = fields.Integer()
    name = fields.String()
    description = fields.String()
    created_by = fields.Integer()
    owner_id = fields.Integer()
    member_count = fields.Integer()
    storage_used = fields.Integer()
    storage_quota = fields.Integer()
    policy_group_id = fields.Integer()
    created_at = Timestamp()
    updated_at = Timestamp()
    archived_at = Timestamp()


class OwnTeamsSchema(RequestSchema):
    """GET /teams."""

    limit = Clamped(MAX_LIMIT, 1, MAX_LIMIT)
    offset = Clamped(0, 0, INT64 - 1)
    archived = fields.Boolean(load_default=False)
    keyword = text(MAX_INPUT_LENGTH, nullable=True, description="part of the name, in any case")


class TeamInfo(Answer):
    """A team; sizes are in bytes, and a quota of 0 means no limit."""

    id = fields.Integer(attribute="team.id")
    name = fields.String(attribute="team.name")
    description = fields.String(attribute="team.description")
    member_count = fields.Integer(attribute="team.member_count")
    storage_used = fields.Integer(attribute="team.storage_used")
    storage_quota = fields.Integer(attribute="team.storage_quota")
    policy_group_id = fields.Integer(allow_none=True, attribute="team.policy_group_id")
    created_at = Timestamp(attribute="team.created_at")
    updated_at = Timestamp(attribute="team.updated_at")
    archived_at = Timestamp(allow_none=True, attribute="team.archived_at")


class OwnTeamItem(TeamInfo):
    """A team of the caller; sizes are in bytes, and a quota of 0 means no limit."""

    created_by = fields.Nested(UserSummary, allow_none=True, attribute="creator")
    my_role = Word(TeamRole)


class ManagedTeamItem(TeamInfo):
    """A team as administrators see it; of several owners, the one with the lowest id."""

    created_by = fields.Nested(UserSummary, allow_none=True, attribute="creator")
    owner_id = fields.Integer(allow_none=True, attribute="team.owner_id")


class TeamMemberItem(Answer):
    """A member of a team, with the status of its account."""

    id = fields.Integer(attribute="member.id")
    team_id = fields.Integer(attribute="member.team_id")
    user_id = fields.Integer(attribute="member.user_id")
    user = fields.Nested(UserSummary, attribute="account")
    email = fields.String(attribute="account.email")
    role = Word(TeamRole, attribute="member.role")
    status = Word(Status, attribute="account.status")
    created_at = Timestamp(attribute="member.created_at")
    updated_at = Timestamp(attribute="member.updated_at")


# Of the whole team, beside a page of its members.
MEMBER_COUNTS = {
    "owner_count": fields.Integer(),
    "manager_count": fields.Integer(),
}


class CreateOwnTeamSchema(RequestSchema):
    """POST /teams."""

    name = text(MAX_INPUT_LENGTH, description=NAME_RULE)
    description = text(MAX_DESCRIPTION_LENGTH, nullable=True)


class UpdateOwnTeamSchema(RequestSchema):
    """PATCH /teams/{id}; absent members, and null, are left as they are."""

    name = Text(
        validate=validate.Length(max=MAX_INPUT_LENGTH),
        allow_none=True,
        metadata={"description": NAME_RULE},
    )
    description = Text(validate=validate.Length(max=MAX_DESCRIPTION_LENGTH), allow_none=True)
    expected_updated_at = Moment("refuse the change if the team is not of this time")


class TeamListQuery(PageQuery):
    """GET /admin/teams."""

    keyword = Filter("part of a name; an id")
    archived = fields.Boolean(load_default=False)
    sort_by = sort_by(tuple(TEAM_COLUMNS), "created_at")
    sort_order = sort_order()


class MemberListQuery(PageQuery):
    """GET /admin/teams/{id}/members and /teams/{id}/members."""

    limit = Clamped(20, 1, MAX_LIMIT)
    keyword = Filter("part of a username or address; an id")
    role = fields.Enum(TeamRole, by_value=True, load_default=None)
    status = fields.Enum(Status, by_value=True, load_default=None)
    sort_by = sort_by(tuple(MEMBER_COLUMNS), "role")
    sort_order = sort_order("asc")


class CreateTeamSchema(RequestSchema):
    """POST /admin/teams; the account becomes its owner."""

    name = text(MAX_INPUT_LENGTH, description=NAME_RULE)
    description = text(MAX_DESCRIPTION_LENGTH, nullable=True)
    admin_user_id = WholeNumber(validate=validate.Range(1), load_default=None)
    admin_identifier = text(MAX_INPUT_LENGTH, nullable=True, description=IDENTIFIER_RULE)
    storage_quota = WholeNumber(validate=validate.Range(0, MAX_QUOTA_BYTES), load_default=None)
    policy_group_id = WholeNumber(validate=validate.Range(1), load_default=None)

    @validates_schema
    def _require_one(self, members: dict[str, Any], **_: Any) -> None:
        require_one_of(members, "admin_user_id", "admin_identifier")


class UpdateTeamSchema(RequestSchema):
    """PATCH /admin/teams/{id}; absent members are left as they are."""

    name = Text(validate=validate.Length(max=MAX_INPUT_LENGTH), metadata={"description": NAME_RULE})
    description = Text(validate=validate.Length(max=MAX_DESCRIPTION_LENGTH))
    storage_quota = WholeNumber(validate=validate.Range(0, MAX_QUOTA_BYTES))
    policy_group = WholeNumber(validate=validate.Range(1), data_key="policy_group_id")
    expected_updated_at = Moment("refuse the change if the team is not of this time")


class AddMemberSchema(RequestSchema):
    """POST /admin/teams/{id}/members and /teams/{id}/members."""

    user_id = WholeNumber(validate=validate.Range(1), load_default=None)
    identifier = text(MAX_INPUT_LENGTH, nullable=True, description=IDENTIFIER_RULE)
    role = fields.Enum(TeamRole, by_value=True, load_default=TeamRole.MEMBER)

    @validates_schema
    def _require_one(self, members: dict[str, Any], **_: Any) -> None:
        require_one_of(members, "user_id", "identifier")


class SetMemberRoleSchema(RequestSchema):
    """PATCH /admin/teams/{id}/members/{user_id} and /teams/{id}/members/{user_id}."""

    role = fields.Enum(TeamRole, by_value=True, required=True)
    expected_updated_at = Moment("refuse the change if the membership is not of this time")


def require_one_of(members: dict[str, Any], by_id: str, by_name: str) -> None:
    """Refuse a body that names an account in both ways, or in none.

    Raises: ValidationError.
    """
    if (members[by_id] is None) == (members[by_name] is None):
        raise ValidationError(f"exactly one of {by_id} and {by_name} is needed", by_id)
