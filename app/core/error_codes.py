"""The complete documented catalogue of response codes, with their default HTTP status.

Source: spec, Errors; statuses: spec 02 Appendix A. No other code is ever emitted (decision A2).
"""

from enum import StrEnum
from http import HTTPStatus
from typing import Self


class ErrorCode(StrEnum):
    """Every value that `code` can take in a response envelope."""

    default_status: HTTPStatus

    def __new__(cls, code: str, status: int) -> Self:
        """Create a member that equals its wire text and carries its default status."""
        member = str.__new__(cls, code)
        member._value_ = code
        member.default_status = HTTPStatus(status)
        return member

    SUCCESS = "success", 200
    UPLOAD_ASSEMBLING = "upload.assembling", 202
    UPLOAD_CHUNK_PENDING = "upload.chunk_pending", 202
    BAD_REQUEST = "bad_request", 400
    CONFIG_PUBLIC_SITE_URL_REQUIRED = "config.public_site_url_required", 400
    CONFIG_PUBLIC_SITE_URL_INVALID = "config.public_site_url_invalid", 400
    AUTH_CONTACT_VERIFICATION_INVALID = "auth.contact_verification_invalid", 400
    AUTH_USERNAME_EXISTS = "auth.username_exists", 400
    AUTH_EMAIL_EXISTS = "auth.email_exists", 400
    AUTH_IDENTIFIER_EXISTS = "auth.identifier_exists", 400
    AUTH_EMAIL_BLOCKED = "auth.email_blocked", 400
    AUTH_EMAIL_NOT_ALLOWLISTED = "auth.email_not_allowlisted", 400
    AUTH_INVITATION_INVALID = "auth.invitation_invalid", 400
    AUTH_INVITATION_EXPIRED = "auth.invitation_expired", 400
    AUTH_INVITATION_REVOKED = "auth.invitation_revoked", 400
    AUTH_INVITATION_ACCEPTED = "auth.invitation_accepted", 400
    FILE_TOO_LARGE = "file.too_large", 400
    FILE_TYPE_NOT_ALLOWED = "file.type_not_allowed", 400
    FILE_NAME_CONFLICT = "file.name_conflict", 400
    FOLDER_NAME_CONFLICT = "folder.name_conflict", 400
    UPLOAD_REQUEST_BODY_READ_FAILED = "upload.request_body_read_failed", 400
    UPLOAD_REQUEST_SIZE_MISMATCH = "upload.request_size_mismatch", 400
    UPLOAD_FIELD_READ_FAILED = "upload.field_read_failed", 400
    UPLOAD_DECLARED_SIZE_INVALID = "upload.declared_size_invalid", 400
    UPLOAD_EMPTY_FILE = "upload.empty_file", 400
    UPLOAD_CHUNK_TRANSPORT_MISMATCH = "upload.chunk_transport_mismatch", 400
    UPLOAD_CHUNK_SESSION_INVALID = "upload.chunk_session_invalid", 400
    UPLOAD_CHUNK_NUMBER_OUT_OF_RANGE = "upload.chunk_number_out_of_range", 400
    UPLOAD_CHUNK_SIZE_MISMATCH = "upload.chunk_size_mismatch", 400
    UPLOAD_PARTS_REQUIRED = "upload.parts_required", 400
    UPLOAD_PART_NUMBERS_EMPTY = "upload.part_numbers_empty", 400
    UPLOAD_PART_NUMBERS_TOO_MANY = "upload.part_numbers_too_many", 400
    UPLOAD_PART_NUMBER_OUT_OF_RANGE = "upload.part_number_out_of_range", 400
    THUMBNAIL_SOURCE_TOO_LARGE = "thumbnail.source_too_large", 400
    STORAGE_UNSUPPORTED_DRIVER = "storage.unsupported_driver", 400
    INTERNAL_STORAGE_RANGE_LENGTH_INVALID = "internal_storage.range_length_invalid", 400
    INTERNAL_STORAGE_RANGE_EMPTY_OBJECT = "internal_storage.range_empty_object", 400
    INTERNAL_STORAGE_RANGE_OFFSET_OUT_OF_BOUNDS = "internal_storage.range_offset_out_of_bounds", 400
    INTERNAL_STORAGE_RANGE_HEADER_INVALID = "internal_storage.range_header_invalid", 400
    INTERNAL_STORAGE_RANGE_MULTIPLE_UNSUPPORTED = "internal_storage.range_multiple_unsupported", 400
    INTERNAL_STORAGE_RANGE_BOUNDS_INVALID = "internal_storage.range_bounds_invalid", 400
    INTERNAL_STORAGE_CONTENT_LENGTH_REQUIRED = "internal_storage.content_length_required", 400
    INTERNAL_STORAGE_CONTENT_LENGTH_INVALID = "internal_storage.content_length_invalid", 400
    INTERNAL_STORAGE_COMPOSE_PARTS_REQUIRED = "internal_storage.compose_parts_required", 400
    INTERNAL_STORAGE_COMPOSE_EXPECTED_SIZE_INVALID = (
        "internal_storage.compose_expected_size_invalid",
        400,
    )
    POLICY_BLOB_REFERENCES_EXIST = "policy.blob_references_exist", 400
    POLICY_UPLOAD_SESSIONS_EXIST = "policy.upload_sessions_exist", 400
    POLICY_STORAGE_ACCESS_KEY_REQUIRED = "policy.storage_access_key_required", 400
    POLICY_STORAGE_SECRET_KEY_REQUIRED = "policy.storage_secret_key_required", 400
    POLICY_STORAGE_BUCKET_REQUIRED = "policy.storage_bucket_required", 400
    POLICY_STORAGE_ENDPOINT_INVALID = "policy.storage_endpoint_invalid", 400
    POLICY_REMOTE_NODE_REQUIRED = "policy.remote_node_required", 400
    POLICY_REMOTE_NODE_UNEXPECTED = "policy.remote_node_unexpected", 400
    POLICY_REMOTE_STORAGE_TARGET_REQUIRED = "policy.remote_storage_target_required", 400
    POLICY_REMOTE_STORAGE_LOCATION_IMMUTABLE = "policy.remote_storage_location_immutable", 400
    POLICY_REMOTE_NODE_DISABLED = "policy.remote_node_disabled", 400
    POLICY_REMOTE_NODE_BASE_URL_REQUIRED = "policy.remote_node_base_url_required", 400
    POLICY_REMOTE_NODE_TRANSFER_STRATEGY_UNSUPPORTED = (
        "policy.remote_node_transfer_strategy_unsupported",
        400,
    )
    POLICY_ONEDRIVE_OPTIONS_UNSUPPORTED = "policy.onedrive_options_unsupported", 400
    POLICY_SFTP_OPTIONS_UNSUPPORTED = "policy.sftp_options_unsupported", 400
    POLICY_ONEDRIVE_ACCOUNT_MODE_REQUIRED = "policy.onedrive_account_mode_required", 400
    POLICY_ONEDRIVE_PERSONAL_CHINA_CLOUD_UNSUPPORTED = (
        "policy.onedrive_personal_china_cloud_unsupported",
        400,
    )
    POLICY_ONEDRIVE_SHAREPOINT_SITE_REQUIRED = "policy.onedrive_sharepoint_site_required", 400
    POLICY_ONEDRIVE_GROUP_REQUIRED = "policy.onedrive_group_required", 400
    POLICY_NATIVE_THUMBNAIL_UNSUPPORTED = "policy.native_thumbnail_unsupported", 400
    POLICY_NATIVE_MEDIA_METADATA_UNSUPPORTED = "policy.native_media_metadata_unsupported", 400
    POLICY_ACTION_UNSUPPORTED = "policy.action_unsupported", 400
    POLICY_ACTION_PARAMETER_REQUIRED = "policy.action_parameter_required", 400
    POLICY_ACTION_PARAMETER_INVALID = "policy.action_parameter_invalid", 400
    POLICY_PROMOTION_SOURCE_UNSUPPORTED = "policy.promotion_source_unsupported", 400
    POLICY_PROMOTION_SOURCE_CONFIG_UNSUPPORTED = "policy.promotion_source_config_unsupported", 400
    POLICY_PROMOTION_TARGET_UNSUPPORTED = "policy.promotion_target_unsupported", 400
    REMOTE_STORAGE_TARGET_BINDING_MISMATCH = "remote_storage_target.binding_mismatch", 400
    REMOTE_STORAGE_TARGET_CONNECTOR_UNSUPPORTED = "remote_storage_target.connector_unsupported", 400
    REMOTE_STORAGE_TARGET_LOCAL_PATH_INVALID = "remote_storage_target.local_path_invalid", 400
    REMOTE_NODE_UNIQUE_CONFLICT = "remote_node.unique_conflict", 400
    ARCHIVE_PREVIEW_SOURCE_TOO_LARGE = "archive_preview.source_too_large", 400
    ARCHIVE_PREVIEW_INVALID_ARCHIVE = "archive_preview.invalid_archive", 400
    ARCHIVE_PREVIEW_MANIFEST_TOO_LARGE = "archive_preview.manifest_too_large", 400
    ARCHIVE_PREVIEW_UNSUPPORTED_TYPE = "archive_preview.unsupported_type", 400
    ARCHIVE_PREVIEW_REJECTED = "archive_preview.rejected", 400
    ARCHIVE_PREVIEW_SOURCE_SIZE_MISMATCH = "archive_preview.source_size_mismatch", 400
    AVATAR_FILE_REQUIRED = "avatar.file_required", 400
    AVATAR_UPLOAD_READ_FAILED = "avatar.upload_read_failed", 400
    AVATAR_EMPTY_IMAGE = "avatar.empty_image", 400
    AVATAR_RENDER_FAILED = "avatar.render_failed", 400
    PASSKEY_NAME_INVALID = "passkey.name_invalid", 400
    PASSKEY_NAME_TOO_LONG = "passkey.name_too_long", 400
    PASSKEY_NOT_DISCOVERABLE = "passkey.not_discoverable", 400
    TEAM_MEMBER_EXISTS = "team.member_exists", 400
    EXTERNAL_AUTH_CALLBACK_REDIRECT_URI_REQUIRED = (
        "external_auth.callback_redirect_uri_required",
        400,
    )
    OFFLINE_DOWNLOAD_ARIA2_RPC_AUTH_FAILED = "offline_download.aria2_rpc_auth_failed", 400
    OFFLINE_DOWNLOAD_ARIA2_RPC_PROBE_FAILED = "offline_download.aria2_rpc_probe_failed", 400
    TASK_RETRY_STATUS_CONFLICT = "task.retry_status_conflict", 400
    TASK_RETRY_NOT_ALLOWED = "task.retry_not_allowed", 400
    WEBDAV_USERNAME_EXISTS = "webdav.username_exists", 400
    WOPI_PUBLIC_SITE_URL_REQUIRED = "wopi.public_site_url_required", 400
    VALIDATION_REQUEST_ORIGIN_INVALID = "validation.request_origin_invalid", 400
    VALIDATION_REQUEST_REFERER_INVALID = "validation.request_referer_invalid", 400
    VALIDATION_REQUEST_HOST_INVALID = "validation.request_host_invalid", 400
    VALIDATION_REQUEST_SCHEME_INVALID = "validation.request_scheme_invalid", 400
    VALIDATION_REQUEST_HEADER_VALUE_INVALID = "validation.request_header_value_invalid", 400
    VALIDATION_SYSTEM_ALREADY_INITIALIZED = "validation.system_already_initialized", 400
    VALIDATION_SYSTEM_NOT_INITIALIZED = "validation.system_not_initialized", 400
    SEARCH_QUERY_EMPTY = "search.query_empty", 400
    SEARCH_TYPE_INVALID = "search.type_invalid", 400
    SEARCH_TAG_MATCH_INVALID = "search.tag_match_invalid", 400
    SEARCH_SIZE_RANGE_INVALID = "search.size_range_invalid", 400
    SEARCH_FILE_FILTER_TYPE_CONFLICT = "search.file_filter_type_conflict", 400
    SEARCH_MIME_TYPE_EMPTY = "search.mime_type_empty", 400
    SEARCH_CATEGORY_INVALID = "search.category_invalid", 400
    SEARCH_EXTENSIONS_INVALID = "search.extensions_invalid", 400
    SEARCH_TAG_IDS_INVALID = "search.tag_ids_invalid", 400
    SEARCH_DATE_INVALID = "search.date_invalid", 400
    SEARCH_DATE_RANGE_INVALID = "search.date_range_invalid", 400
    AUTH_FAILED = "auth.failed", 401
    AUTH_TOKEN_EXPIRED = "auth.token_expired", 401
    AUTH_TOKEN_INVALID = "auth.token_invalid", 401
    AUTH_TOKEN_MISSING = "auth.token_missing", 401
    AUTH_CREDENTIALS_FAILED = "auth.credentials_failed", 401
    AUTH_MFA_FAILED = "auth.mfa_failed", 401
    AUTH_REFRESH_TOKEN_STALE = "auth.refresh_token_stale", 401
    AUTH_REFRESH_TOKEN_REUSE_DETECTED = "auth.refresh_token_reuse_detected", 401
    AUTH_MFA_FLOW_INVALID = "auth.mfa_flow_invalid", 401
    AUTH_MFA_FLOW_EXPIRED = "auth.mfa_flow_expired", 401
    AUTH_MFA_CODE_INVALID = "auth.mfa_code_invalid", 401
    AUTH_MFA_ATTEMPTS_EXCEEDED = "auth.mfa_attempts_exceeded", 401
    AUTH_MFA_FACTOR_REQUIRED = "auth.mfa_factor_required", 401
    AUTH_MFA_RECOVERY_CODE_USED = "auth.mfa_recovery_code_used", 401
    AUTH_MFA_EMAIL_CODE_REQUIRED = "auth.mfa_email_code_required", 401
    AUTH_MFA_EMAIL_CODE_EXPIRED = "auth.mfa_email_code_expired", 401
    FORBIDDEN = "forbidden", 403
    AUTH_PENDING_ACTIVATION = "auth.pending_activation", 403
    AUTH_ADMIN_REQUIRED = "auth.admin_required", 403
    AUTH_ACCOUNT_DISABLED = "auth.account_disabled", 403
    AUTH_REQUEST_SOURCE_UNTRUSTED = "auth.request_source_untrusted", 403
    AUTH_REQUEST_ORIGIN_UNTRUSTED = "auth.request_origin_untrusted", 403
    AUTH_REQUEST_REFERER_UNTRUSTED = "auth.request_referer_untrusted", 403
    AUTH_REQUEST_SOURCE_MISSING = "auth.request_source_missing", 403
    AUTH_SESSION_USER_MISMATCH = "auth.session_user_mismatch", 403
    AUTH_CSRF_COOKIE_MISSING = "auth.csrf_cookie_missing", 403
    AUTH_CSRF_HEADER_MISSING = "auth.csrf_header_missing", 403
    AUTH_CSRF_TOKEN_INVALID = "auth.csrf_token_invalid", 403
    AUTH_PASSKEY_LOGIN_DISABLED = "auth.passkey_login_disabled", 403
    AUTH_PASSWORD_LOGIN_DISABLED = "auth.password_login_disabled", 403
    AUTH_REGISTRATION_DISABLED = "auth.registration_disabled", 403
    AUTH_MFA_FACTOR_ALREADY_EXISTS = "auth.mfa_factor_already_exists", 403
    AUTH_PASSWORD_CHANGE_REQUIRED = "auth.password_change_required", 403
    LOCK_NOT_OWNER = "lock.not_owner", 403
    SHARE_PASSWORD_REQUIRED = "share.password_required", 403
    SHARE_DOWNLOAD_LIMIT_REACHED = "share.download_limit_reached", 403
    SHARE_SCOPE_DENIED = "share.scope_denied", 403
    ARCHIVE_PREVIEW_DISABLED = "archive_preview.disabled", 403
    ARCHIVE_PREVIEW_USER_DISABLED = "archive_preview.user_disabled", 403
    ARCHIVE_PREVIEW_SHARE_DISABLED = "archive_preview.share_disabled", 403
    ARCHIVE_COMPRESS_DISABLED = "archive_compress.disabled", 403
    ARCHIVE_DOWNLOAD_USER_DISABLED = "archive_download.user_disabled", 403
    ARCHIVE_DOWNLOAD_SHARE_DISABLED = "archive_download.share_disabled", 403
    TEAM_NOT_MEMBER = "team.not_member", 403
    TEAM_OWNER_REQUIRED = "team.owner_required", 403
    TEAM_ADMIN_OR_OWNER_REQUIRED = "team.admin_or_owner_required", 403
    WORKSPACE_SCOPE_DENIED = "workspace.scope_denied", 403
    EXTERNAL_AUTH_PROVIDER_DISABLED = "external_auth.provider_disabled", 403
    EXTERNAL_AUTH_POLICY_DENIED = "external_auth.policy_denied", 403
    WOPI_APP_DISABLED = "wopi.app_disabled", 403
    WOPI_REQUEST_ORIGIN_UNTRUSTED = "wopi.request_origin_untrusted", 403
    WOPI_REQUEST_REFERER_UNTRUSTED = "wopi.request_referer_untrusted", 403
    NOT_FOUND = "not_found", 404
    ENDPOINT_NOT_FOUND = "endpoint.not_found", 404
    FILE_NOT_FOUND = "file.not_found", 404
    FOLDER_NOT_FOUND = "folder.not_found", 404
    SHARE_NOT_FOUND = "share.not_found", 404
    SHARE_EXPIRED = "share.expired", 404
    UPLOAD_SESSION_NOT_FOUND = "upload.session_not_found", 404
    STORAGE_POLICY_NOT_FOUND = "storage.policy_not_found", 404
    CONFLICT = "conflict", 409
    AUTH_CONTACT_VERIFICATION_EXPIRED = "auth.contact_verification_expired", 410
    UPLOAD_SESSION_EXPIRED = "upload.session_expired", 410
    PRECONDITION_FAILED = "precondition_failed", 412
    FILE_ETAG_MISMATCH = "file.etag_mismatch", 412
    FILE_MODIFIED_DURING_WRITE = "file.modified_during_write", 412
    THUMBNAIL_PROCESSOR_UNAVAILABLE = "thumbnail.processor_unavailable", 412
    REMOTE_STORAGE_TARGET_UNAVAILABLE = "remote_storage_target.unavailable", 412
    REMOTE_STORAGE_TARGET_NOT_APPLIED = "remote_storage_target.not_applied", 412
    REMOTE_STORAGE_TARGET_REQUIRED = "remote_storage_target.required", 412
    REMOTE_STORAGE_TARGET_REFERENCED = "remote_storage_target.referenced", 412
    REMOTE_STORAGE_TARGET_SINGLE_PRIMARY_REQUIRED = (
        "remote_storage_target.single_primary_required",
        412,
    )
    REMOTE_STORAGE_TARGET_NOT_FOUND = "remote_storage_target.not_found", 412
    MASTER_BINDING_DISABLED = "master_binding.disabled", 412
    REMOTE_NODE_DISABLED = "remote_node.disabled", 412
    REMOTE_NODE_ENROLLMENT_REQUIRED = "remote_node.enrollment_required", 412
    AVATAR_PROCESSOR_UNAVAILABLE = "avatar.processor_unavailable", 412
    TASK_LEASE_LOST = "task.lease_lost", 412
    TASK_LEASE_RENEWAL_TIMED_OUT = "task.lease_renewal_timed_out", 412
    TASK_WORKER_SHUTDOWN_REQUESTED = "task.worker_shutdown_requested", 412
    WOPI_MAX_EXPECTED_SIZE_EXCEEDED = "wopi.max_expected_size_exceeded", 412
    UPLOAD_CHUNK_TOO_LARGE = "upload.chunk_too_large", 413
    UPLOAD_CHUNK_SIZE_OVERFLOW = "upload.chunk_size_overflow", 413
    RESOURCE_LOCKED = "resource.locked", 423
    RATE_LIMITED = "rate_limited", 429
    INTERNAL_SERVER_ERROR = "internal_server_error", 500
    DATABASE_ERROR = "database.error", 500
    CONFIG_ERROR = "config.error", 500
    FILE_UPLOAD_FAILED = "file.upload_failed", 500
    UPLOAD_CHUNK_FAILED = "upload.chunk_failed", 500
    UPLOAD_ASSEMBLY_FAILED = "upload.assembly_failed", 500
    UPLOAD_TEMP_DIR_CREATE_FAILED = "upload.temp_dir_create_failed", 500
    UPLOAD_TEMP_FILE_CREATE_FAILED = "upload.temp_file_create_failed", 500
    UPLOAD_TEMP_FILE_WRITE_FAILED = "upload.temp_file_write_failed", 500
    UPLOAD_TEMP_FILE_FLUSH_FAILED = "upload.temp_file_flush_failed", 500
    UPLOAD_REQUEST_BODY_SIZE_OVERFLOW = "upload.request_body_size_overflow", 500
    UPLOAD_HASH_TEMP_OPEN_FAILED = "upload.hash_temp_open_failed", 500
    UPLOAD_HASH_TEMP_READ_FAILED = "upload.hash_temp_read_failed", 500
    UPLOAD_LOCAL_STAGING_PATH_RESOLVE_FAILED = "upload.local_staging_path_resolve_failed", 500
    UPLOAD_LOCAL_STAGING_DIR_CREATE_FAILED = "upload.local_staging_dir_create_failed", 500
    UPLOAD_LOCAL_STAGING_FILE_CREATE_FAILED = "upload.local_staging_file_create_failed", 500
    UPLOAD_LOCAL_STAGING_WRITE_FAILED = "upload.local_staging_write_failed", 500
    UPLOAD_LOCAL_STAGING_FLUSH_FAILED = "upload.local_staging_flush_failed", 500
    UPLOAD_DIRECT_RELAY_WRITE_FAILED = "upload.direct_relay_write_failed", 500
    UPLOAD_DIRECT_RELAY_SHUTDOWN_FAILED = "upload.direct_relay_shutdown_failed", 500
    UPLOAD_DIRECT_RELAY_TASK_FAILED = "upload.direct_relay_task_failed", 500
    UPLOAD_BODY_SIZE_OVERFLOW = "upload.body_size_overflow", 500
    UPLOAD_CHUNK_PERSIST_FAILED = "upload.chunk_persist_failed", 500
    UPLOAD_CHUNK_RELAY_FAILED = "upload.chunk_relay_failed", 500
    UPLOAD_STATUS_CONFLICT = "upload.status_conflict", 500
    UPLOAD_COMPLETED_FILE_MISSING = "upload.completed_file_missing", 500
    UPLOAD_PREVIOUS_FAILURE = "upload.previous_failure", 500
    UPLOAD_INCOMPLETE_CHUNKS = "upload.incomplete_chunks", 500
    UPLOAD_INCOMPLETE_PARTS = "upload.incomplete_parts", 500
    UPLOAD_MISSING_PART = "upload.missing_part", 500
    UPLOAD_TEMP_OBJECT_MISSING = "upload.temp_object_missing", 500
    UPLOAD_TEMP_OBJECT_SIZE_MISMATCH = "upload.temp_object_size_mismatch", 500
    UPLOAD_FINAL_OBJECT_SIZE_MISMATCH = "upload.final_object_size_mismatch", 500
    UPLOAD_SESSION_CORRUPTED = "upload.session_corrupted", 500
    UPLOAD_ASSEMBLY_IO_FAILED = "upload.assembly_io_failed", 500
    UPLOAD_ASSEMBLY_SIZE_OVERFLOW = "upload.assembly_size_overflow", 500
    THUMBNAIL_FAILED = "thumbnail.failed", 500
    THUMBNAIL_FORMAT_GUESS_FAILED = "thumbnail.format_guess_failed", 500
    THUMBNAIL_DECODE_FAILED = "thumbnail.decode_failed", 500
    THUMBNAIL_ENCODE_FAILED = "thumbnail.encode_failed", 500
    THUMBNAIL_SOURCE_OPEN_FAILED = "thumbnail.source_open_failed", 500
    THUMBNAIL_SOURCE_STREAM_FAILED = "thumbnail.source_stream_failed", 500
    THUMBNAIL_TASK_PANICKED = "thumbnail.task_panicked", 500
    THUMBNAIL_RENDER_FAILED = "thumbnail.render_failed", 500
    THUMBNAIL_OUTPUT_INVALID = "thumbnail.output_invalid", 500
    THUMBNAIL_SOURCE_TEMP_CREATE_FAILED = "thumbnail.source_temp_create_failed", 500
    THUMBNAIL_SOURCE_TEMP_FLUSH_FAILED = "thumbnail.source_temp_flush_failed", 500
    THUMBNAIL_SOURCE_TEMP_COPY_FAILED = "thumbnail.source_temp_copy_failed", 500
    STORAGE_DRIVER_ERROR = "storage.driver_error", 500
    STORAGE_AUTH_FAILED = "storage.auth_failed", 500
    STORAGE_PERMISSION_DENIED = "storage.permission_denied", 500
    STORAGE_MISCONFIGURED = "storage.misconfigured", 500
    STORAGE_OBJECT_NOT_FOUND = "storage.object_not_found", 500
    STORAGE_RATE_LIMITED = "storage.rate_limited", 500
    STORAGE_TRANSIENT_FAILURE = "storage.transient_failure", 500
    STORAGE_PRECONDITION_FAILED = "storage.precondition_failed", 500
    STORAGE_OPERATION_UNSUPPORTED = "storage.operation_unsupported", 500
    STORAGE_AUTH = "storage.auth", 500
    STORAGE_NOT_FOUND = "storage.not_found", 500
    STORAGE_PERMISSION = "storage.permission", 500
    STORAGE_PRECONDITION = "storage.precondition", 500
    STORAGE_TRANSIENT = "storage.transient", 500
    STORAGE_UNSUPPORTED = "storage.unsupported", 500
    STORAGE_UNKNOWN = "storage.unknown", 500
    AVATAR_OUTPUT_INVALID = "avatar.output_invalid", 500
    MAIL_NOT_CONFIGURED = "mail.not_configured", 503
    MAIL_DELIVERY_FAILED = "mail.delivery_failed", 503
    UPLOAD_CAPACITY_UNAVAILABLE = "upload.capacity_unavailable", 503
    OPERATION_RESOURCE_LIMIT_EXCEEDED = "operation.resource_limit_exceeded", 507
    UPLOAD_TARGET_CAPACITY_INSUFFICIENT = "upload.target_capacity_insufficient", 507
    UPLOAD_STAGING_CAPACITY_INSUFFICIENT = "upload.staging_capacity_insufficient", 507
    STORAGE_QUOTA_EXCEEDED = "storage.quota_exceeded", 507
