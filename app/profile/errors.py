"""Errors of the own account."""

from app.core.errors import BadRequest


class FieldGroupUnknown(BadRequest):
    """`fields` names a group that does not exist."""

    message = "fields may name only the groups profile, preferences, quota, session."


class DisplayNameInvalid(BadRequest):
    """The name is too long, or has control characters."""

    message = "A display name has at most 64 characters and no control characters."


class PreferenceInvalid(BadRequest):
    """A built-in preference has a value that is not allowed."""

    message = "A preference has a value that is not allowed."


class CustomPreferencesInvalid(BadRequest):
    """A custom key is empty, reserved or named twice, or its value cannot be stored."""

    message = "The custom preferences are not valid."


class PreferencesTooLarge(BadRequest):
    """All preferences together would exceed the size limit."""

    message = "The preferences of an account may take up to 1 MiB."


PREFERENCES = (PreferenceInvalid, CustomPreferencesInvalid, PreferencesTooLarge)
