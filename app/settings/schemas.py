"""What is asked about settings, and what is shown of them."""

from typing import Any

from marshmallow import ValidationError, fields, pre_load, validate, validates_schema

from app.core import product
from app.core.setting_kinds import ItemKind, ValueType
from app.core.texts import is_storable
from app.settings.catalogue import UNITS
from app.web.paging import Moment
from app.web.schema import Answer, RequestSchema, Text, Timestamp, always, force

MAX_KEYS = 100
ANY_VALUE: dict[str, Any] = {
    "type": ["string", "boolean", "integer", "array"],
    "items": {"type": "string"},
    "examples": ["Our files"],
}
SHOWN_VALUE: dict[str, Any] = {
    "type": ["string", "array"],
    "items": {"type": "string"},
    "examples": ["Our files"],
}


class KeyData(Answer):
    """What a setting means and takes, without its value."""

    key = fields.String(attribute="key.name")
    description = fields.String(attribute="key.description")
    default = fields.Raw()
    value_type = fields.String(attribute="key.value_type")
    options = fields.List(fields.String(), attribute="key.options")
    is_sensitive = fields.Boolean(attribute="key.is_sensitive")


class SettingData(KeyData):
    """A setting with the value in force."""

    value = fields.Raw()
    is_set = fields.Boolean()
    updated_at = Timestamp()


class SystemConfigData(Answer):
    """A setting with the value in force; a secret one is shown as a placeholder."""

    id = fields.Integer()
    key = fields.String(attribute="key.name")
    value = fields.Raw(attribute="value_with_text", metadata=SHOWN_VALUE)
    value_type = fields.String(
        attribute="key.value_type",
        validate=validate.OneOf(ValueType.__args__),  # type: ignore[attr-defined]
    )
    requires_restart = always(product.SETTING["requires_restart"], "boolean")
    is_sensitive = fields.Boolean(attribute="key.is_sensitive")
    source = always(product.SETTING["source"], "string")
    visibility = always(product.SETTING["visibility"], "string")
    namespace = always(product.SETTING["namespace"], "string")
    category = fields.String(metadata={"examples": ["site"]})
    description = fields.String(attribute="key.description")
    updated_at = Timestamp(allow_none=True)
    updated_by = fields.Integer(
        allow_none=True,
        metadata={"description": "the account that set it; null for the command line"},
    )
    is_set = fields.Boolean()
    default = fields.Raw(attribute="default_with_text", metadata=SHOWN_VALUE)


class SettingOptionData(Answer):
    """One word that a setting takes."""

    value = fields.String()
    label_i18n_key = fields.String()
    group = fields.String()


class SettingPlaceData(Answer):
    """Where pages may put a button."""

    category = fields.String()
    subcategory = fields.String()
    group = fields.String()
    order = fields.Integer()


class SettingActionData(Answer):
    """What can be done with settings: an action of `POST /admin/config/{target_key}/action`."""

    action = fields.String()
    label_i18n_key = fields.String()
    target_key = fields.String()
    presentation = fields.Nested(SettingPlaceData)


class SettingSchemaItem(Answer):
    """What a setting means and takes."""

    key = fields.String()
    label_i18n_key = fields.String()
    description_i18n_key = fields.String()
    value_type = fields.String(validate=validate.OneOf(ValueType.__args__))  # type: ignore[attr-defined]
    category = fields.String()
    description = fields.String()
    requires_restart = fields.Boolean()
    is_sensitive = fields.Boolean()
    options = fields.List(fields.Nested(SettingOptionData))
    actions = fields.List(fields.Nested(SettingActionData))
    invalidates = fields.List(fields.String())
    default = fields.Raw(metadata=SHOWN_VALUE)
    minimum = fields.Integer(allow_none=True)
    maximum = fields.Integer(allow_none=True)
    unit = fields.String(
        allow_none=True,
        validate=validate.OneOf((*UNITS, None)),
    )
    max_length = fields.Integer(allow_none=True)
    item_kind = fields.String(
        allow_none=True,
        validate=validate.OneOf((*ItemKind.__args__, None)),  # type: ignore[attr-defined]
    )


class ChangedSettingsData(Answer):
    """The settings that a change changed; what had its value already is not among them."""

    changed = fields.List(fields.Nested(SystemConfigData))
    also_changed = fields.List(
        fields.String(metadata={"examples": ["auth_email_code_login_enabled"]})
    )


class SettingProblemData(Answer):
    """What is wrong with one setting."""

    key = fields.String()
    problem = fields.String(metadata={"examples": ["must be true or false"]})


class SettingsVerdictData(Answer):
    """Whether settings are valid, and what would change along with them."""

    valid = fields.Boolean()
    problems = fields.List(fields.Nested(SettingProblemData))
    also_changed = fields.List(fields.String())


class SettingsExportData(Answer):
    """The settings that are set, by name, without secrets."""


class SettingValue(fields.Field[Any]):
    """The new value of a setting: a text, a list of texts, a whole number, or true or false."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(metadata=ANY_VALUE, **settings)

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> Any:
        if isinstance(value, bool | int):
            return value
        entries = value if isinstance(value, list) else [value]
        if not all(isinstance(entry, str) for entry in entries):
            raise ValidationError("must be text, a list of texts, a whole number, true or false")
        if not all(map(is_storable, entries)):
            raise ValidationError("must not contain NUL or unpaired surrogates")
        return value


class SetSettingSchema(RequestSchema):
    """PUT /admin/config/{key}."""

    value = SettingValue(required=True)

    @pre_load
    def _refuse_visibility(self, body: dict[str, Any], **_: Any) -> dict[str, Any]:
        if "visibility" in body:
            raise ValidationError("a setting of the service stays private", "visibility")
        return body


class DraftSettingsSchema(RequestSchema):
    """POST /admin/config/validate; `unset` returns to the defaults."""

    values = fields.Dict(keys=Text(), values=SettingValue(), load_default=dict)
    unset = fields.List(Text(), load_default=list)

    @validates_schema
    def _require_few_and_distinct(self, members: dict[str, Any], **_: Any) -> None:
        values, unset = members.get("values", {}), members.get("unset", [])
        if len(values) + len(unset) > MAX_KEYS:
            raise ValidationError(f"must name at most {MAX_KEYS} settings", "values")
        if set(values) & set(unset):
            raise ValidationError("must not name what is in values", "unset")


class ChangeSettingsSchema(DraftSettingsSchema):
    """PATCH /admin/config."""

    expected_updated_at = Moment("refuse the change if a setting named was changed after this time")


class ImportSettingsSchema(RequestSchema):
    """POST /admin/config/import: what an export answered, by itself or as `values`."""

    values = fields.Dict(keys=Text(), values=SettingValue())

    @pre_load
    def _wrap(self, body: dict[str, Any], **_: Any) -> dict[str, Any]:
        return body if isinstance(body.get("values"), dict) else {"values": body}


class ForceQuery(RequestSchema):
    """Whether a change may shut its author out."""

    is_forced = force("change even what may shut this session out")
