"""Errors reported to an operator."""

from app.access_tokens.errors import AccessTokenNotFound
from app.core.errors import BadRequest, Conflict, ErrorCode
from app.external_auth.errors import LinkNotFound
from app.login.errors import LastWayIn, PasswordLoginDisabled
from app.passkeys.errors import PasskeyNotFound
from app.sessions.errors import SessionNotFound
from app.setup.errors import SystemNotInitialized
from app.storage_policies.errors import GROUP_REFUSED
from app.teams.errors import (
    TeamOwnerUndeletable,
)
from app.users.errors import (
    NAMES_TAKEN,
    NEW_ACCOUNT,
    NEW_PASSWORD,
    EmailExists,
    EmailInvalid,
    UserNotFound,
)


class LastAdministrator(Conflict):
    """Nobody would be left to administer the service."""

    message = "This is the last active administrator."


class OwnAccount(Conflict):
    """The account is the administrator's own; its settings ask for the proof that is due there."""

    message = "This is your own account; change it in your own settings."


class AccountChanged(Conflict):
    """The account is not as it was when the change was decided on."""

    message = "The account has been changed meanwhile."


class NotThatUser(BadRequest):
    """The account with the id is not the one the administrator means."""

    message = "The account with this id has another username."


class GroupMisplaced(BadRequest):
    """Accounts are to be assigned to no group, or a group is named for something else."""

    message = "policy_group_id is for assign_group, which needs it."


class AdministratorUndeletable(Conflict):
    """Administrators are not deleted."""

    message = "An administrator cannot be deleted; take the role away first."


class MailUnwanted(Conflict):
    """A reset link goes only to the verified address of an account that may sign in."""

    message = "The account is disabled, not activated, or its address is not verified."


class PasswordAbsent(Conflict):
    """An account without a password cannot change it, so it would be locked out."""

    message = "The account has no password to change; give it one first."


class HashInvalid(BadRequest):
    """A password hash of another service cannot be used; the message says why."""

    message = "hash is of no kind that can be verified."


class NoAdministrator(BadRequest):
    """There are accounts but no administrator, so the installation is not ready."""

    code = ErrorCode.VALIDATION_SYSTEM_NOT_INITIALIZED
    message = "There is no administrator."
    remedy = "Run `flask users set-role USER admin`."


CREATE_USER = (SystemNotInitialized, *NEW_ACCOUNT, *NAMES_TAKEN, *GROUP_REFUSED)
UPDATE_USER = (
    UserNotFound,
    AccountChanged,
    *GROUP_REFUSED,
    OwnAccount,
    LastAdministrator,
    PasswordAbsent,
)
SET_EMAIL = (UserNotFound, OwnAccount, EmailInvalid, EmailExists)
SET_PASSWORD = (UserNotFound, OwnAccount, *NEW_PASSWORD)
RESET_MFA = UNLOCK = (UserNotFound, OwnAccount)
SEND_RESET_MAIL = (UserNotFound, MailUnwanted, PasswordLoginDisabled)
REMOVE_PASSKEY = (UserNotFound, OwnAccount, PasskeyNotFound, LastWayIn)
REMOVE_LINK = (UserNotFound, OwnAccount, LinkNotFound, LastWayIn)
REMOVE_TOKENS = (UserNotFound, OwnAccount)
REMOVE_TOKEN = (*REMOVE_TOKENS, AccessTokenNotFound)
REVOKE_SESSION = (UserNotFound, SessionNotFound)
CHANGE_MANY = (GroupMisplaced, *GROUP_REFUSED)
DELETE_USER = (
    UserNotFound,
    NotThatUser,
    AdministratorUndeletable,
    TeamOwnerUndeletable,
)
