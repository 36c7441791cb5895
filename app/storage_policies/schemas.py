"""What requests, answers and commands show of policies and their groups."""

from typing import Any

from marshmallow import ValidationError, fields, post_load, validate, validates_schema

from app.core import product
from app.storage_policies.groups import Item
from app.storage_policies.models import (
    DEFAULT_CHUNK_BYTES,
    LOCAL_CONNECTOR,
    MAX_DESCRIPTION_LENGTH,
    MAX_NAME_LENGTH,
)
from app.storage_policies.queries import GROUP_COLUMNS, POLICY_COLUMNS
from app.web.paging import Filter, Moment, PageQuery, sort_by, sort_order
from app.web.schema import (
    INT64,
    MAX_INPUT_LENGTH,
    Answer,
    Part,
    RequestSchema,
    StrictBoolean,
    Text,
    Timestamp,
    WholeNumber,
    text,
)

NAME_RULE = f"1 to {MAX_NAME_LENGTH} characters"
MAX_ITEMS = 100
MAX_TYPES, MAX_TYPE_LENGTH = 200, 255
MAX_PRIORITY = 2**31 - 1
# Files on this machine: the name that is kept, and the product's own.
LOCAL = (LOCAL_CONNECTOR, product.LOCAL_STORAGE)


class Size(WholeNumber):
    """A number of bytes, 0 or more."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(validate=validate.Range(0, INT64 - 1), **settings)


class MigrateAssignmentsSchema(RequestSchema):
    """POST /admin/policy-groups/{id}/migrate-assignments."""

    target_group_id = WholeNumber(required=True)


class MigratedAssignmentsData(Answer):
    """How many assignments were moved."""

    source_group_id = fields.Integer()
    target_group_id = fields.Integer()
    affected_users = fields.Integer()
    affected_teams = fields.Integer()
    migrated_assignments = fields.Integer()


class PolicyListQuery(PageQuery):
    """GET /admin/policies."""

    sort_by = sort_by(tuple(POLICY_COLUMNS), "created_at")
    sort_order = sort_order()


class GroupListQuery(PageQuery):
    """GET /admin/policy-groups."""

    sort_by = sort_by(tuple(GROUP_COLUMNS), "created_at")
    sort_order = sort_order()


class ConnectorConfig(Answer):
    """Which connector a policy uses; its values are the business of the service of the files."""

    connector_id = fields.String()
    format_version = fields.Integer(dump_default=product.CONNECTOR["format_version"])
    schema_version = fields.Integer(dump_default=product.CONNECTOR["schema_version"])
    values = fields.Dict(dump_default=product.CONNECTOR["values"])


class ManagedPolicy(Answer):
    """A policy as administrators see it; sizes are in bytes, 0 is no limit, or no chunks."""

    id = fields.Integer()
    name = fields.String()
    connector_id = fields.String()
    connector_config = Part(ConnectorConfig)
    behavior = fields.Dict(dump_default=product.NO_BEHAVIOR)
    max_file_size = fields.Integer()
    allowed_types = fields.List(fields.String(), attribute="types")
    chunk_size = fields.Integer()
    is_default = fields.Boolean()
    created_at = Timestamp()
    updated_at = Timestamp()


class CreatePolicySchema(RequestSchema):
    """POST /admin/policies; whatever names a kind of storage must name the local one.

    What does not is refused with an error of its own, so the members that name one take anything.
    """

    name = text(MAX_INPUT_LENGTH, description=NAME_RULE)
    max_file_size = Size(load_default=0)
    chunk_size = Size(load_default=DEFAULT_CHUNK_BYTES)
    allowed_types = fields.List(
        Text(validate=validate.Length(1, MAX_TYPE_LENGTH)),
        load_default=list,
        validate=validate.Length(max=MAX_TYPES),
    )
    connection = fields.Dict(load_default=None)
    connector_config = fields.Dict(load_default=None)
    connector_id = fields.Raw(allow_none=True, metadata={"type": "string", "enum": LOCAL})


def is_local(connection: dict[str, Any] | None, *places: dict[str, Any] | None) -> bool:
    """Return whether all that is named in these objects is the local kind; a connection names one.

    `places` are other objects that may name one.
    """
    inner = (connection or {}).get("connector_config")
    connecting = [*_kinds_in(connection), *_kinds_in(inner)]
    named = connecting + [kind for place in places for kind in _kinds_in(place)]
    return (connection is None or bool(connecting)) and all(one in LOCAL for one in named)


def _kinds_in(place: object) -> list[object]:
    kinds = ("connector_id", "driver_type")
    return [place[kind] for kind in kinds if kind in place] if isinstance(place, dict) else []


class StorageDriver(Answer):
    """A kind of storage as the product's own client describes its forms."""

    connector_id = fields.String()
    label = fields.String()
    description = fields.String()
    ui = fields.Dict()
    credential_mode = fields.String()
    credential_management = fields.Dict(allow_none=True)
    credential_schema_version = fields.Integer(allow_none=True)
    config_schema_version = fields.Integer()
    deployment_scope = fields.String()
    supports_initial_setup = fields.Boolean()
    requires_authorization = fields.Boolean()
    authorization_provider = fields.String(allow_none=True)
    capabilities = fields.Dict()
    upload_workflows = fields.Dict()
    fields_ = fields.List(fields.Dict(), attribute="fields", data_key="fields")
    actions = fields.List(fields.Dict())
    promotions = fields.List(fields.Dict())
    related_issues = fields.List(fields.Integer())


class RemoteNode(Answer):
    """Another machine that keeps files; there is none."""

    id = fields.Integer()
    name = fields.String()


class LocalizationsQuery(RequestSchema):
    """GET /admin/policies/storage-drivers/localizations."""

    locale = Filter("a language tag; English is answered where there is no text in it")


class DriverTexts(Answer):
    """The texts of one kind of storage, by their names in its description."""

    connector_id = fields.String()
    namespace = fields.String()
    revision = fields.String()
    requested_locale = fields.String()
    resolved_locale = fields.String()
    messages = fields.Dict(keys=fields.String(), values=fields.String())


class DriverLocalizations(Answer):
    """The texts of every kind of storage in one language."""

    requested_locale = fields.String()
    resources = fields.List(fields.Nested(DriverTexts))


class PolicyOfGroup(Answer):
    """A policy in a group."""

    id = fields.Integer()
    name = fields.String()
    connector_id = fields.String()


class PolicyData(PolicyOfGroup):
    """A policy, as commands show it."""

    is_default = fields.Boolean()
    max_file_size = fields.Integer()
    chunk_size = fields.Integer()
    created_at = Timestamp()
    updated_at = Timestamp()


class ManagedGroupItem(Answer):
    """A policy's place in a group, for files of some sizes; a greatest size of 0 is no limit."""

    id = fields.Integer()
    policy_id = fields.Integer()
    priority = fields.Integer()
    min_file_size = fields.Integer()
    max_file_size = fields.Integer()
    policy = fields.Nested(PolicyOfGroup)


class ManagedGroup(Answer):
    """A policy group as administrators see it."""

    id = fields.Integer()
    name = fields.String()
    description = fields.String()
    is_enabled = fields.Boolean()
    is_default = fields.Boolean()
    created_at = Timestamp()
    updated_at = Timestamp()
    items = fields.List(fields.Nested(ManagedGroupItem))


class AssignedGroup(ManagedGroup):
    """A policy group with how many accounts and teams are assigned to it."""

    users = fields.Integer()
    teams = fields.Integer()


class GroupItemSchema(RequestSchema):
    """A policy that a group is to have."""

    policy_id = WholeNumber(required=True, validate=validate.Range(1))
    priority = WholeNumber(required=True, validate=validate.Range(1, MAX_PRIORITY))
    min_file_size = Size(load_default=0)
    max_file_size = Size(load_default=0)

    @validates_schema
    def _require_a_range(self, members: dict[str, Any], **_: Any) -> None:
        if 0 < members["max_file_size"] <= members["min_file_size"]:
            raise ValidationError("must be 0 or more than min_file_size", "max_file_size")

    @post_load
    def _as_item(self, members: dict[str, Any], **_: Any) -> Item:
        return Item(**members)


def _require_each_priority_once(items: list[Item]) -> None:
    if len({item.priority for item in items}) < len(items):
        raise ValidationError("must have each priority once")


def _items(**settings: Any) -> fields.List[Any]:
    rules = (validate.Length(1, MAX_ITEMS), _require_each_priority_once)
    return fields.List(fields.Nested(GroupItemSchema), validate=rules, **settings)


class CreateGroupSchema(RequestSchema):
    """POST /admin/policy-groups."""

    name = text(MAX_INPUT_LENGTH, description=NAME_RULE)
    description = text(MAX_DESCRIPTION_LENGTH, nullable=True)
    is_enabled = StrictBoolean(load_default=True)
    is_default = StrictBoolean(load_default=False)
    items = _items(required=True)


class UpdateGroupSchema(RequestSchema):
    """PATCH /admin/policy-groups/{id}; absent members are left as they are, items are replaced."""

    name = Text(validate=validate.Length(max=MAX_INPUT_LENGTH), metadata={"description": NAME_RULE})
    description = Text(validate=validate.Length(max=MAX_DESCRIPTION_LENGTH))
    is_enabled = StrictBoolean()
    is_default = StrictBoolean()
    items = _items()
    expected_updated_at = Moment("refuse the change if the group is not of this time")
