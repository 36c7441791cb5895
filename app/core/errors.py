"""Kinds of error. Each documented condition is a subclass with its own code and public message.

Only `web/errors.py` knows which HTTP status a kind maps to.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import ClassVar


class ErrorCode(StrEnum):
    """Every value that `code` takes in an answer; the product documents more, for other parts."""

    SUCCESS = "success"
    BAD_REQUEST = "bad_request"
    CONFIG_PUBLIC_SITE_URL_REQUIRED = "config.public_site_url_required"
    CONFIG_PUBLIC_SITE_URL_INVALID = "config.public_site_url_invalid"
    AUTH_CONTACT_VERIFICATION_INVALID = "auth.contact_verification_invalid"
    AUTH_USERNAME_EXISTS = "auth.username_exists"
    AUTH_EMAIL_EXISTS = "auth.email_exists"
    AUTH_IDENTIFIER_EXISTS = "auth.identifier_exists"
    AUTH_EMAIL_BLOCKED = "auth.email_blocked"
    AUTH_EMAIL_NOT_ALLOWLISTED = "auth.email_not_allowlisted"
    AUTH_INVITATION_INVALID = "auth.invitation_invalid"
    AUTH_INVITATION_EXPIRED = "auth.invitation_expired"
    AUTH_INVITATION_REVOKED = "auth.invitation_revoked"
    AUTH_INVITATION_ACCEPTED = "auth.invitation_accepted"
    FILE_TOO_LARGE = "file.too_large"
    FILE_TYPE_NOT_ALLOWED = "file.type_not_allowed"
    AVATAR_FILE_REQUIRED = "avatar.file_required"
    AVATAR_UPLOAD_READ_FAILED = "avatar.upload_read_failed"
    AVATAR_EMPTY_IMAGE = "avatar.empty_image"
    AVATAR_RENDER_FAILED = "avatar.render_failed"
    PASSKEY_NAME_INVALID = "passkey.name_invalid"
    PASSKEY_NAME_TOO_LONG = "passkey.name_too_long"
    PASSKEY_NOT_DISCOVERABLE = "passkey.not_discoverable"
    TEAM_MEMBER_EXISTS = "team.member_exists"
    EXTERNAL_AUTH_CALLBACK_REDIRECT_URI_REQUIRED = "external_auth.callback_redirect_uri_required"
    VALIDATION_REQUEST_ORIGIN_INVALID = "validation.request_origin_invalid"
    VALIDATION_REQUEST_REFERER_INVALID = "validation.request_referer_invalid"
    VALIDATION_REQUEST_HOST_INVALID = "validation.request_host_invalid"
    VALIDATION_REQUEST_SCHEME_INVALID = "validation.request_scheme_invalid"
    VALIDATION_REQUEST_HEADER_VALUE_INVALID = "validation.request_header_value_invalid"
    VALIDATION_SYSTEM_ALREADY_INITIALIZED = "validation.system_already_initialized"
    VALIDATION_SYSTEM_NOT_INITIALIZED = "validation.system_not_initialized"
    AUTH_FAILED = "auth.failed"
    AUTH_TOKEN_EXPIRED = "auth.token_expired"
    AUTH_TOKEN_INVALID = "auth.token_invalid"
    AUTH_TOKEN_MISSING = "auth.token_missing"
    AUTH_CREDENTIALS_FAILED = "auth.credentials_failed"
    AUTH_REFRESH_TOKEN_STALE = "auth.refresh_token_stale"
    AUTH_REFRESH_TOKEN_REUSE_DETECTED = "auth.refresh_token_reuse_detected"
    AUTH_MFA_FLOW_INVALID = "auth.mfa_flow_invalid"
    AUTH_MFA_FLOW_EXPIRED = "auth.mfa_flow_expired"
    AUTH_MFA_CODE_INVALID = "auth.mfa_code_invalid"
    AUTH_MFA_ATTEMPTS_EXCEEDED = "auth.mfa_attempts_exceeded"
    AUTH_MFA_FACTOR_REQUIRED = "auth.mfa_factor_required"
    AUTH_MFA_RECOVERY_CODE_USED = "auth.mfa_recovery_code_used"
    AUTH_MFA_EMAIL_CODE_REQUIRED = "auth.mfa_email_code_required"
    AUTH_MFA_EMAIL_CODE_EXPIRED = "auth.mfa_email_code_expired"
    FORBIDDEN = "forbidden"
    AUTH_PENDING_ACTIVATION = "auth.pending_activation"
    AUTH_ADMIN_REQUIRED = "auth.admin_required"
    AUTH_ACCOUNT_DISABLED = "auth.account_disabled"
    AUTH_REQUEST_SOURCE_UNTRUSTED = "auth.request_source_untrusted"
    AUTH_REQUEST_ORIGIN_UNTRUSTED = "auth.request_origin_untrusted"
    AUTH_REQUEST_REFERER_UNTRUSTED = "auth.request_referer_untrusted"
    AUTH_REQUEST_SOURCE_MISSING = "auth.request_source_missing"
    AUTH_SESSION_USER_MISMATCH = "auth.session_user_mismatch"
    AUTH_CSRF_COOKIE_MISSING = "auth.csrf_cookie_missing"
    AUTH_CSRF_HEADER_MISSING = "auth.csrf_header_missing"
    AUTH_CSRF_TOKEN_INVALID = "auth.csrf_token_invalid"
    AUTH_PASSKEY_LOGIN_DISABLED = "auth.passkey_login_disabled"
    AUTH_PASSWORD_LOGIN_DISABLED = "auth.password_login_disabled"
    AUTH_REGISTRATION_DISABLED = "auth.registration_disabled"
    AUTH_MFA_FACTOR_ALREADY_EXISTS = "auth.mfa_factor_already_exists"
    AUTH_PASSWORD_CHANGE_REQUIRED = "auth.password_change_required"
    TEAM_NOT_MEMBER = "team.not_member"
    TEAM_OWNER_REQUIRED = "team.owner_required"
    TEAM_ADMIN_OR_OWNER_REQUIRED = "team.admin_or_owner_required"
    EXTERNAL_AUTH_PROVIDER_DISABLED = "external_auth.provider_disabled"
    EXTERNAL_AUTH_POLICY_DENIED = "external_auth.policy_denied"
    NOT_FOUND = "not_found"
    ENDPOINT_NOT_FOUND = "endpoint.not_found"
    STORAGE_UNSUPPORTED_DRIVER = "storage.unsupported_driver"
    STORAGE_POLICY_NOT_FOUND = "storage.policy_not_found"
    CONFLICT = "conflict"
    AUTH_CONTACT_VERIFICATION_EXPIRED = "auth.contact_verification_expired"
    PRECONDITION_FAILED = "precondition_failed"
    AVATAR_PROCESSOR_UNAVAILABLE = "avatar.processor_unavailable"
    RATE_LIMITED = "rate_limited"
    INTERNAL_SERVER_ERROR = "internal_server_error"
    DATABASE_ERROR = "database.error"
    CONFIG_ERROR = "config.error"
    STORAGE_UNKNOWN = "storage.unknown"
    MAIL_NOT_CONFIGURED = "mail.not_configured"
    MAIL_DELIVERY_FAILED = "mail.delivery_failed"
    OPERATION_RESOURCE_LIMIT_EXCEEDED = "operation.resource_limit_exceeded"
    STORAGE_QUOTA_EXCEEDED = "storage.quota_exceeded"


class AppError(Exception):
    """A documented condition that ends a request; its message is shown to the caller.

    `remedy` is what to do about it at the command line, the only place that shows it; "" if
    nothing. `data` holds further facts for programs, each true or absent; None if there are none.
    """

    code: ClassVar[ErrorCode]
    message: ClassVar[str]
    remedy: str = ""
    data: ClassVar[Mapping[str, bool] | None] = None

    def __init__(
        self, message: str | None = None, *, retry_after: int | None = None, remedy: str = ""
    ) -> None:
        self.public_message = message or self.message
        self.retry_after = retry_after
        self.remedy = remedy or self.remedy
        super().__init__(self.public_message)

    @property
    def message_with_remedy(self) -> str:
        """The message as the command line shows it."""
        return f"{self.public_message} {self.remedy}".rstrip()

    @classmethod
    def example(cls) -> str:
        """Return a message as callers get it, for the API description."""
        return cls.message


class BadRequest(AppError):
    """The request cannot be understood or breaks a rule."""

    code = ErrorCode.BAD_REQUEST
    message = "The request is not valid."


class Unauthenticated(AppError):
    """The caller's identity is not proven."""

    code = ErrorCode.AUTH_FAILED
    message = "Authentication failed."


class Forbidden(AppError):
    """The caller is known and may not do this."""

    code = ErrorCode.FORBIDDEN
    message = "This is not allowed."


class NotFound(AppError):
    """There is no such thing, or it is not the caller's."""

    code = ErrorCode.NOT_FOUND
    message = "Not found."


class Conflict(AppError):
    """The current state does not allow the operation."""

    code = ErrorCode.CONFLICT
    message = "The current state does not allow this."


class Gone(AppError):
    """It was there and has expired."""

    code = ErrorCode.AUTH_CONTACT_VERIFICATION_EXPIRED
    message = "This has expired."


class TooLarge(AppError):
    """The request body is larger than this route accepts."""

    code = ErrorCode.FILE_TOO_LARGE
    message = "The request body is too large."


class PreconditionFailed(AppError):
    """The installation lacks something the operation needs."""

    code = ErrorCode.PRECONDITION_FAILED
    message = "This installation cannot do this."


class RateLimited(AppError):
    """Too many requests; Retry-After and the message say in how many seconds to try again."""

    code = ErrorCode.RATE_LIMITED
    message = "Too many requests."

    def __init__(self, message: str | None = None, *, retry_after: int) -> None:
        super().__init__(
            f"{message or self.message} Try again in {retry_after} s.", retry_after=retry_after
        )

    @classmethod
    def example(cls) -> str:
        """Return a message as callers get it, for the API description."""
        return cls(retry_after=30).public_message


class Misconfigured(AppError):
    """An administrator's settings cannot work."""

    code = ErrorCode.CONFIG_ERROR
    message = "The service is not configured correctly."


class Unavailable(AppError):
    """Something the service depends on does not answer right now."""

    code = ErrorCode.INTERNAL_SERVER_ERROR
    message = "The service is temporarily unavailable."


class RedisUnavailable(Unavailable):
    """Redis does not answer."""


class DatabaseUnavailable(Unavailable):
    """The database does not answer, or is too busy."""

    code = ErrorCode.DATABASE_ERROR
    message = "The database is temporarily unavailable."


class DatabaseConnectionLost(DatabaseUnavailable):
    """The connection was lost during a statement: a change may have been made, or not."""


class ServerFault(AppError):
    """The service itself failed, in a documented way; the log says how."""

    code = ErrorCode.INTERNAL_SERVER_ERROR
    message = "Internal Server Error"


class InsufficientStorage(AppError):
    """There is not enough storage for the data."""

    code = ErrorCode.STORAGE_QUOTA_EXCEEDED
    message = "There is not enough storage."
