"""Errors of people's own data."""

from app.avatars.errors import StorageFailed
from app.core.errors import BadRequest, Conflict
from app.teams.errors import TeamOwnerUndeletable


class NotYourUsername(BadRequest):
    """What was typed to confirm the deletion is not the account's username."""

    message = "Type your username to confirm."


class AdministratorStays(Conflict):
    """The account of an administrator is not deleted."""

    message = "You are an administrator; give the role to somebody else first."


DELETE_ACCOUNT = (
    NotYourUsername,
    AdministratorStays,
    TeamOwnerUndeletable,
)
EXPORT = (StorageFailed,)
