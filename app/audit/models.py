"""The audit log's table, actions and entity types."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlalchemy import BigInteger, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.core.client import Client
from app.store.db import Base, Id, UTCDateTime


class Action(StrEnum):
    """Every recorded action."""

    SYSTEM_SETUP = "system_setup"
    SERVER_START = "server_start"
    SERVER_SHUTDOWN = "server_shutdown"
    USER_REGISTER = "user_register"
    USER_CONFIRM_REGISTRATION = "user_confirm_registration"
    USER_RESEND_REGISTRATION = "user_resend_registration"
    USER_LOGIN = "user_login"
    USER_LOGIN_FAILED = "user_login_failed"
    USER_LOGOUT = "user_logout"
    USER_REFRESH_TOKEN_REUSE_DETECTED = "user_refresh_token_reuse_detected"
    USER_REVOKE_SESSION = "user_revoke_session"
    USER_REVOKE_OTHER_SESSIONS = "user_revoke_other_sessions"
    USER_CHANGE_PASSWORD = "user_change_password"
    USER_REQUEST_PASSWORD_RESET = "user_request_password_reset"
    USER_CONFIRM_PASSWORD_RESET = "user_confirm_password_reset"
    USER_REQUEST_EMAIL_CHANGE = "user_request_email_change"
    USER_CONFIRM_EMAIL_CHANGE = "user_confirm_email_change"
    USER_RESEND_EMAIL_CHANGE = "user_resend_email_change"
    USER_MFA_ENABLE = "user_mfa_enable"
    USER_MFA_DISABLE = "user_mfa_disable"
    USER_MFA_RECOVERY_CODES_REGENERATE = "user_mfa_recovery_codes_regenerate"
    USER_MFA_EMAIL_CODE_SEND = "user_mfa_email_code_send"
    USER_MFA_DEVICE_REMOVE = "user_mfa_device_remove"
    USER_MFA_CHALLENGE_SUCCESS = "user_mfa_challenge_success"
    USER_MFA_CHALLENGE_FAILED = "user_mfa_challenge_failed"
    USER_PASSKEY_REGISTER = "user_passkey_register"
    USER_PASSKEY_LOGIN = "user_passkey_login"
    USER_PASSKEY_RENAME = "user_passkey_rename"
    USER_PASSKEY_DELETE = "user_passkey_delete"
    USER_TOKEN_CREATE = "user_token_create"
    USER_TOKEN_RENAME = "user_token_rename"
    USER_TOKEN_DELETE = "user_token_delete"
    USER_EXTERNAL_AUTH_LOGIN = "user_external_auth_login"
    USER_EXTERNAL_AUTH_LINK = "user_external_auth_link"
    USER_EXTERNAL_AUTH_UNLINK = "user_external_auth_unlink"
    USER_CONFIRM_IDENTITY = "user_confirm_identity"
    USER_LOCK_ACCOUNT = "user_lock_account"
    USER_EXPORT_DATA = "user_export_data"
    USER_DELETE_ACCOUNT = "user_delete_account"
    USER_UPDATE_PREFERENCES = "user_update_preferences"
    USER_UPDATE_PROFILE = "user_update_profile"
    USER_UPLOAD_AVATAR = "user_upload_avatar"
    USER_SET_AVATAR_SOURCE = "user_set_avatar_source"
    ADMIN_CREATE_USER = "admin_create_user"
    ADMIN_UPDATE_USER = "admin_update_user"
    ADMIN_FORCE_DELETE_USER = "admin_force_delete_user"
    ADMIN_RESET_USER_PASSWORD = "admin_reset_user_password"
    ADMIN_RESET_USER_MFA = "admin_reset_user_mfa"
    ADMIN_REVOKE_USER_SESSIONS = "admin_revoke_user_sessions"
    ADMIN_REVOKE_USER_SESSION = "admin_revoke_user_session"
    ADMIN_SET_USER_EMAIL = "admin_set_user_email"
    ADMIN_REMOVE_USER_PASSKEY = "admin_remove_user_passkey"
    ADMIN_REMOVE_USER_EXTERNAL_LINK = "admin_remove_user_external_link"
    ADMIN_CREATE_USER_TOKEN = "admin_create_user_token"
    ADMIN_REMOVE_USER_TOKEN = "admin_remove_user_token"
    ADMIN_UNLOCK_USER = "admin_unlock_user"
    ADMIN_CREATE_INVITATION = "admin_create_invitation"
    ADMIN_REVOKE_INVITATION = "admin_revoke_invitation"
    ADMIN_RESEND_INVITATION = "admin_resend_invitation"
    ADMIN_CREATE_EXTERNAL_AUTH_PROVIDER = "admin_create_external_auth_provider"
    ADMIN_UPDATE_EXTERNAL_AUTH_PROVIDER = "admin_update_external_auth_provider"
    ADMIN_DELETE_EXTERNAL_AUTH_PROVIDER = "admin_delete_external_auth_provider"
    ADMIN_TEST_EXTERNAL_AUTH_PROVIDER = "admin_test_external_auth_provider"
    ADMIN_CREATE_POLICY_GROUP = "admin_create_policy_group"
    ADMIN_UPDATE_POLICY_GROUP = "admin_update_policy_group"
    ADMIN_DELETE_POLICY_GROUP = "admin_delete_policy_group"
    ADMIN_MIGRATE_POLICY_GROUP_USERS = "admin_migrate_policy_group_users"
    ADMIN_CREATE_STORAGE_POLICY = "admin_create_storage_policy"
    ADMIN_CREATE_TEAM = "admin_create_team"
    ADMIN_UPDATE_TEAM = "admin_update_team"
    ADMIN_ARCHIVE_TEAM = "admin_archive_team"
    ADMIN_RESTORE_TEAM = "admin_restore_team"
    TEAM_CREATE = "team_create"
    TEAM_UPDATE = "team_update"
    TEAM_ARCHIVE = "team_archive"
    TEAM_RESTORE = "team_restore"
    TEAM_MEMBER_ADD = "team_member_add"
    TEAM_MEMBER_UPDATE = "team_member_update"
    TEAM_MEMBER_REMOVE = "team_member_remove"
    ADMIN_EXPORT_AUDIT_LOG = "admin_export_audit_log"
    CONFIG_UPDATE = "config_update"
    CONFIG_ACTION_EXECUTE = "config_action_execute"
    ADMIN_DELETE_CONFIG = "admin_delete_config"
    MAIL_SEND = "mail_send"
    MAIL_DELIVERY_FAILED = "mail_delivery_failed"


class EntityType(StrEnum):
    """What an entry is about."""

    USER = "user"
    AUTH_SESSION = "auth_session"
    INVITATION = "invitation"
    MFA_FACTOR = "mfa_factor"
    BROWSER = "browser"
    PASSKEY = "passkey"
    ACCESS_TOKEN = "access_token"
    EXTERNAL_AUTH_IDENTITY = "external_auth_identity"
    EXTERNAL_AUTH_PROVIDER = "external_auth_provider"
    POLICY_GROUP = "policy_group"
    STORAGE_POLICY = "storage_policy"
    TEAM = "team"
    SYSTEM_CONFIG = "system_config"
    MAIL = "mail"


# What each action is about, unless it is an account.
SUBJECTS = {
    EntityType.AUTH_SESSION: (
        Action.USER_LOGIN,
        Action.USER_LOGIN_FAILED,
        Action.USER_LOGOUT,
        Action.USER_REVOKE_SESSION,
        Action.USER_REVOKE_OTHER_SESSIONS,
    ),
    EntityType.INVITATION: (
        Action.ADMIN_CREATE_INVITATION,
        Action.ADMIN_REVOKE_INVITATION,
        Action.ADMIN_RESEND_INVITATION,
    ),
    EntityType.MFA_FACTOR: (
        Action.USER_MFA_ENABLE,
        Action.USER_MFA_DISABLE,
        Action.USER_MFA_RECOVERY_CODES_REGENERATE,
        Action.USER_MFA_EMAIL_CODE_SEND,
        Action.USER_MFA_CHALLENGE_SUCCESS,
        Action.USER_MFA_CHALLENGE_FAILED,
    ),
    EntityType.BROWSER: (Action.USER_MFA_DEVICE_REMOVE,),
    EntityType.PASSKEY: (
        Action.USER_PASSKEY_REGISTER,
        Action.USER_PASSKEY_LOGIN,
        Action.USER_PASSKEY_RENAME,
        Action.USER_PASSKEY_DELETE,
    ),
    EntityType.ACCESS_TOKEN: (
        Action.USER_TOKEN_CREATE,
        Action.USER_TOKEN_RENAME,
        Action.USER_TOKEN_DELETE,
        Action.ADMIN_CREATE_USER_TOKEN,
        Action.ADMIN_REMOVE_USER_TOKEN,
    ),
    EntityType.EXTERNAL_AUTH_IDENTITY: (
        Action.USER_EXTERNAL_AUTH_LOGIN,
        Action.USER_EXTERNAL_AUTH_LINK,
        Action.USER_EXTERNAL_AUTH_UNLINK,
    ),
    EntityType.EXTERNAL_AUTH_PROVIDER: (
        Action.ADMIN_CREATE_EXTERNAL_AUTH_PROVIDER,
        Action.ADMIN_UPDATE_EXTERNAL_AUTH_PROVIDER,
        Action.ADMIN_DELETE_EXTERNAL_AUTH_PROVIDER,
        Action.ADMIN_TEST_EXTERNAL_AUTH_PROVIDER,
    ),
    EntityType.POLICY_GROUP: (
        Action.ADMIN_CREATE_POLICY_GROUP,
        Action.ADMIN_UPDATE_POLICY_GROUP,
        Action.ADMIN_DELETE_POLICY_GROUP,
        Action.ADMIN_MIGRATE_POLICY_GROUP_USERS,
    ),
    EntityType.STORAGE_POLICY: (Action.ADMIN_CREATE_STORAGE_POLICY,),
    EntityType.TEAM: (
        Action.ADMIN_CREATE_TEAM,
        Action.ADMIN_UPDATE_TEAM,
        Action.ADMIN_ARCHIVE_TEAM,
        Action.ADMIN_RESTORE_TEAM,
        Action.TEAM_CREATE,
        Action.TEAM_UPDATE,
        Action.TEAM_ARCHIVE,
        Action.TEAM_RESTORE,
        Action.TEAM_MEMBER_ADD,
        Action.TEAM_MEMBER_UPDATE,
        Action.TEAM_MEMBER_REMOVE,
    ),
    EntityType.SYSTEM_CONFIG: (
        Action.SERVER_START,
        Action.SERVER_SHUTDOWN,
        Action.ADMIN_EXPORT_AUDIT_LOG,
        Action.CONFIG_UPDATE,
        Action.CONFIG_ACTION_EXECUTE,
        Action.ADMIN_DELETE_CONFIG,
    ),
    EntityType.MAIL: (Action.MAIL_SEND, Action.MAIL_DELIVERY_FAILED),
}


def subject_of(action: Action) -> EntityType:
    """Return what the entries of an action are about."""
    found = (kind for kind, actions in SUBJECTS.items() if action in actions)
    return next(found, EntityType.USER)


class Actor(StrEnum):
    """Who is behind an entry: an account, a command, or the service itself and strangers."""

    USER = "user"
    CLI = "cli"
    SYSTEM = "system"


@dataclass(frozen=True)
class Event:
    """An action to be recorded.

    `client` is None for the command line and for the system itself; `user_id` is 0 for these and
    for an unknown user. `details` must not contain secrets.
    """

    action: Action
    entity_type: EntityType
    client: Client | None = None
    user_id: int = 0
    entity_id: int | None = None
    entity_name: str | None = None
    details: Mapping[str, object] | None = None


class AuditEntry(Base):
    """One recorded event; `entity_name_folded` is for searching, see `store.search`."""

    __tablename__ = "audit_log"
    __table_args__ = (
        Index("ix_audit_log_user_id_created_at", "user_id", "created_at"),
        Index("ix_audit_log_created_at", "created_at", "id"),
        Index("ix_audit_log_action_created_at", "action", "created_at"),
        Index("ix_audit_log_entity_created_at", "entity_type", "entity_id", "created_at"),
    )

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    user_id: Mapped[int] = mapped_column(BigInteger)
    action: Mapped[str] = mapped_column(String(64))
    entity_type: Mapped[str] = mapped_column(String(32))
    entity_id: Mapped[int | None] = mapped_column(BigInteger)
    entity_name: Mapped[str | None] = mapped_column(String(255))
    entity_name_folded: Mapped[str | None] = mapped_column(Text)
    details: Mapped[str | None] = mapped_column(Text)
    ip_address: Mapped[str | None] = mapped_column(String(128))
    user_agent: Mapped[str | None] = mapped_column(String(512))
    created_at: Mapped[datetime] = mapped_column(UTCDateTime)


class AuditHour(Base):
    """How often an action was recorded in the hour that began at `hour`; see `hourly`."""

    __tablename__ = "audit_hourly"

    hour: Mapped[datetime] = mapped_column(UTCDateTime, primary_key=True)
    action: Mapped[str] = mapped_column(String(64), primary_key=True)
    n: Mapped[int] = mapped_column(BigInteger)
