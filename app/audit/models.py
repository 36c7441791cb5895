"""The audit log's table, actions and entity types."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlalchemy import BigInteger, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.core.client import Client
from app.core.db import Base, Id, UTCDateTime


class Action(StrEnum):
    """Every recorded action."""

    SYSTEM_SETUP = "system_setup"
    SERVER_START = "server_start"
    SERVER_SHUTDOWN = "server_shutdown"
    USER_REGISTER = "user_register"
    USER_CONFIRM_REGISTRATION = "user_confirm_registration"
    USER_RESEND_REGISTRATION = "user_resend_registration"
    USER_LOGIN = "user_login"
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
    USER_MFA_CHALLENGE_SUCCESS = "user_mfa_challenge_success"
    USER_MFA_CHALLENGE_FAILED = "user_mfa_challenge_failed"
    USER_PASSKEY_REGISTER = "user_passkey_register"
    USER_PASSKEY_LOGIN = "user_passkey_login"
    USER_PASSKEY_RENAME = "user_passkey_rename"
    USER_PASSKEY_DELETE = "user_passkey_delete"
    USER_EXTERNAL_AUTH_LOGIN = "user_external_auth_login"
    USER_EXTERNAL_AUTH_LINK = "user_external_auth_link"
    USER_EXTERNAL_AUTH_UNLINK = "user_external_auth_unlink"
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
    ADMIN_CREATE_INVITATION = "admin_create_invitation"
    ADMIN_REVOKE_INVITATION = "admin_revoke_invitation"
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
    PASSKEY = "passkey"
    EXTERNAL_AUTH_IDENTITY = "external_auth_identity"
    EXTERNAL_AUTH_PROVIDER = "external_auth_provider"
    POLICY_GROUP = "policy_group"
    STORAGE_POLICY = "storage_policy"
    TEAM = "team"
    SYSTEM_CONFIG = "system_config"
    MAIL = "mail"


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
    """One recorded event."""

    __tablename__ = "audit_log"
    __table_args__ = (
        Index("ix_audit_log_user_id_created_at", "user_id", "created_at"),
        Index("ix_audit_log_created_at", "created_at"),
    )

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    user_id: Mapped[int] = mapped_column(BigInteger)
    action: Mapped[str] = mapped_column(String(64))
    entity_type: Mapped[str] = mapped_column(String(32))
    entity_id: Mapped[int | None] = mapped_column(BigInteger)
    entity_name: Mapped[str | None] = mapped_column(String(255))
    details: Mapped[str | None] = mapped_column(Text)
    ip_address: Mapped[str | None] = mapped_column(String(128))
    user_agent: Mapped[str | None] = mapped_column(String(512))
    created_at: Mapped[datetime] = mapped_column(UTCDateTime)
