"""Refusals of a setting change."""

from app.core.errors import BadRequest, NotFound


class SettingUnknown(NotFound):
    """No setting has this key."""

    message = "There is no such setting."


class SettingInvalid(BadRequest):
    """The value is not one this setting can have."""

    message = "The value is not valid."
