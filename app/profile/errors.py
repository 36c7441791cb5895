"""Refusals about the own account."""

from app.core.errors import BadRequest


class FieldGroupUnknown(BadRequest):
    """`fields` names a group that does not exist."""

    message = "fields must name groups of: profile, preferences, quota, session."
