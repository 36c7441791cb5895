"""Errors of reading and changing settings."""

from app.core.errors import BadRequest, NotFound


class SettingUnknown(NotFound):
    """There is no setting with this key."""

    message = "There is no such setting."


class SettingInvalid(BadRequest):
    """The value is not valid for this setting."""

    message = "The value is not valid."
