"""Refusals about the set-up state (spec 01 §3)."""

from app.core.error_codes import ErrorCode
from app.core.errors import BadRequest


class SystemAlreadyInitialized(BadRequest):
    """There is already an account; the first administrator is created only once."""

    code = ErrorCode.VALIDATION_SYSTEM_ALREADY_INITIALIZED
    message = "The system is already initialized."


class SystemNotInitialized(BadRequest):
    """Accounts can be created only once there are an administrator and a storage route."""

    code = ErrorCode.VALIDATION_SYSTEM_NOT_INITIALIZED
    message = "The system is not initialized yet."


class AdministratorMissing(Exception):
    """There are accounts and no administrator: somebody changed the database by hand."""
