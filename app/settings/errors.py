"""Errors of reading and changing settings."""

from app.core.errors import BadRequest, Conflict, Forbidden, NotFound


class SettingUnknown(NotFound):
    """There is no setting with this key."""

    message = "There is no such setting."


class SettingInvalid(BadRequest):
    """The value is not valid for this setting."""

    message = "The value is not valid."


class SettingUndeletable(Forbidden):
    """A setting of this version stays; it can only return to its default."""

    message = "A setting of this version cannot be removed; return it to its default instead."


class SettingsChanged(Conflict):
    """A setting is not as it was when the change was decided on."""

    message = "The settings have been changed meanwhile."


CHANGE = (SettingUnknown, SettingInvalid)
