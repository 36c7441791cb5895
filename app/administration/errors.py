"""Errors reported to an operator."""

from app.core.access import ConfirmationRequired
from app.core.errors import BadRequest, Conflict, ErrorCode, InsufficientStorage, Misconfigured
from app.external_auth.errors import LinkNotFound
from app.login.errors import LastWayIn, PasswordLoginDisabled
from app.passkeys.errors import PasskeyNotFound
from app.sessions.errors import SessionNotFound
from app.setup.errors import SystemNotInitialized
from app.storage_policies.errors import GroupNotFound, GroupUnusable
from app.teams.errors import (
    LastTeamOwnerKept,
    TeamArchived,
    TeamArchivedTooLong,
    TeamChanged,
    TeamMemberChanged,
    TeamMemberDisabled,
    TeamMemberExists,
    TeamMemberNotFound,
    TeamNameInvalid,
    TeamNotArchived,
    TeamNotFound,
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
    """Without a password there is none to change, so the account would be locked out."""

    message = "The account has no password to change; give it one first."


class ZoneUnknown(BadRequest):
    """There is no time zone of this name."""

    message = "There is no time zone of this name; an IANA name such as Europe/Berlin is meant."


class RotationRunning(Conflict):
    """Another rotation of the keys takes unusually long."""

    message = "The keys are being rotated by somebody else; look again in a minute."


class KeysFromEnvironment(Conflict):
    """There is only one key and it comes from the environment; only a key file is rotated here."""

    message = (
        "The keys come from GATEHOUSE_SECRET_KEYS: add a new key at its end and restart all "
        "instances, move it to the front and restart them again, then run this."
    )


class KeysMissing(Misconfigured):
    """There is no key file, but the database has been used with one."""

    message = (
        "The key file is missing, and the database has been used with its keys. Put the file back "
        "from the backup, mount the volume it is on, or set GATEHOUSE_SECRET_KEYS as before."
    )
    remedy = "Only if they are lost for good, run `flask prepare --new-keys` to create new ones."


class HashInvalid(BadRequest):
    """A password hash of another service cannot be used; the message says why."""

    message = "hash is of no kind that can be verified."


class NoAdministrator(BadRequest):
    """There are accounts but no administrator, so the installation is not ready."""

    code = ErrorCode.VALIDATION_SYSTEM_NOT_INITIALIZED
    message = "There is no administrator."
    remedy = "Run `flask users set-role USER admin`."


class ExportTooLong(InsufficientStorage):
    """More entries match than an export may have."""

    code = ErrorCode.OPERATION_RESOURCE_LIMIT_EXCEEDED
    message = "More than 100000 entries match; narrow the filter."


EXPORT_AUDIT_LOG = (ExportTooLong,)
GROUP_REFUSED = (GroupNotFound, GroupUnusable)
CREATE_USER = (SystemNotInitialized, *NEW_ACCOUNT, *NAMES_TAKEN, *GROUP_REFUSED)
UPDATE_USER = (
    UserNotFound,
    AccountChanged,
    *GROUP_REFUSED,
    OwnAccount,
    LastAdministrator,
    PasswordAbsent,
    ConfirmationRequired,
)
SET_EMAIL = (UserNotFound, OwnAccount, EmailInvalid, EmailExists)
SET_PASSWORD = (UserNotFound, OwnAccount, *NEW_PASSWORD)
RESET_MFA = UNLOCK = (UserNotFound, OwnAccount)
SEND_RESET_MAIL = (UserNotFound, MailUnwanted, PasswordLoginDisabled)
REMOVE_PASSKEY = (UserNotFound, OwnAccount, PasskeyNotFound, LastWayIn)
REMOVE_LINK = (UserNotFound, OwnAccount, LinkNotFound, LastWayIn)
REVOKE_SESSION = (UserNotFound, SessionNotFound)
CHANGE_MANY = (GroupMisplaced, *GROUP_REFUSED, ConfirmationRequired)
DELETE_USER = (
    UserNotFound,
    NotThatUser,
    AdministratorUndeletable,
    TeamOwnerUndeletable,
)
CREATE_TEAM = (UserNotFound, TeamNameInvalid, TeamMemberDisabled, *GROUP_REFUSED)
UPDATE_TEAM = (TeamNotFound, TeamArchived, TeamChanged, TeamNameInvalid, *GROUP_REFUSED)
RESTORE_TEAM = (TeamNotFound, TeamNotArchived, TeamArchivedTooLong)
ADD_MEMBER = (UserNotFound, TeamNotFound, TeamArchived, TeamMemberDisabled, TeamMemberExists)
CHANGE_MEMBER = (TeamNotFound, TeamArchived, TeamMemberNotFound, LastTeamOwnerKept)
SET_MEMBER_ROLE = (*CHANGE_MEMBER, TeamMemberChanged)
EXPORT_TEAM_AUDIT_LOG = (TeamNotFound, *EXPORT_AUDIT_LOG)
