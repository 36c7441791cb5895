"""What commands show of settings."""

from marshmallow import Schema, fields

from app.web.schema import Timestamp


class KeyData(Schema):
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
