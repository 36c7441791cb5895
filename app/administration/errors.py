"""Errors reported to an operator."""

from app.core.errors import BadRequest, Conflict, ErrorCode, Misconfigured


class LastAdministrator(Conflict):
    """Nobody would be left to administer the service."""

    message = "This is the last active administrator."


class AdministratorUndeletable(Conflict):
    """Administrators are not deleted."""

    message = "An administrator cannot be deleted; take the role away first."


class PasswordAbsent(Conflict):
    """Without a password there is none to change, so the account would be locked out."""

    message = "The account has no password to change; give it one with `flask users set-password`."


class KeysFromEnvironment(Conflict):
    """There is only one key and it comes from the environment; only a key file is rotated here."""

    message = (
        "The keys come from GATEHOUSE_SECRET_KEYS: add a new key at the end there and restart all "
        "instances, put it first and restart them again, then run this."
    )


class KeysMissing(Misconfigured):
    """There is no key file, but the database has been used with one."""

    message = (
        "The key file is missing, and the database was used with other keys than new ones would "
        "be. Put the file back from the backup, mount the volume it is on, or set "
        "GATEHOUSE_SECRET_KEYS as before. Only if the keys are lost for good, "
        "`flask prepare --new-keys` makes new ones."
    )


class NoAdministrator(BadRequest):
    """There are accounts but no administrator, so the installation is not ready."""

    code = ErrorCode.VALIDATION_SYSTEM_NOT_INITIALIZED
    message = "No account is an administrator: run `flask users set-role USER admin`."
