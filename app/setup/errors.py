"""Errors of the set-up state."""

from app.core.errors import BadRequest, ErrorCode
from app.users.errors import NEW_ACCOUNT


class SystemAlreadyInitialized(BadRequest):
    """An account exists already; the first administrator is created only once."""

    code = ErrorCode.VALIDATION_SYSTEM_ALREADY_INITIALIZED
    message = "The system is already initialized."


class SystemNotInitialized(BadRequest):
    """Accounts can be created only once an administrator and a storage route exist."""

    code = ErrorCode.VALIDATION_SYSTEM_NOT_INITIALIZED
    message = "The system is not initialized yet."


SET_UP = (SystemAlreadyInitialized, *NEW_ACCOUNT)


class AdministratorMissing(Exception):
    """There are accounts but no administrator: somebody changed the database by hand."""
