"""Errors of a password change (spec 01 §7.7)."""

from app.core.errors import BadRequest


class PasswordUnchanged(BadRequest):
    """The new password is the current one."""

    message = "The new password must differ from the current one."
