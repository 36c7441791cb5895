"""The documented runtime settings (spec 01 §10, 02 §0, 04 §6.2), and the list of all of them."""

from typing import Any

from app.audit import keys as audit
from app.core import setting_kinds
from app.core.setting_kinds import Key, boolean, number, text
from app.settings import rules
from app.web import cors, site

DAY = 86_400
YEAR = 365 * DAY
PRODUCT_TITLE = "Gatehouse"

PASSWORD_LOGIN_ENABLED = boolean("auth_password_login_enabled", default=True)
PASSKEY_LOGIN_ENABLED = boolean("auth_passkey_login_enabled", default=True)
ALLOW_USER_REGISTRATION = boolean("auth_allow_user_registration", default=True)
REGISTER_ACTIVATION = setting_kinds.choice(
    "auth_register_activation_enabled", "auto", ("auto", "true", "false"), is_switch=True
)
EMAIL_CODE_LOGIN_ENABLED = boolean("auth_email_code_login_enabled", default=False)
EMAIL_CODE_TOTP_FALLBACK = boolean("auth_email_code_login_allow_totp_fallback", default=False)
EMAIL_CODE_TTL_SECONDS = number("auth_email_code_login_ttl_secs", 600, most=DAY)
EMAIL_CODE_COOLDOWN_SECONDS = number("auth_email_code_login_resend_cooldown_secs", 60, most=DAY)
MFA_FLOW_TTL_SECONDS = number("auth_mfa_flow_ttl_secs", 300, most=DAY)
PASSKEY_FLOW_TTL_SECONDS = number("auth_passkey_flow_ttl_secs", 300, most=DAY)
EXTERNAL_FLOW_TTL_SECONDS = number("auth_external_flow_ttl_secs", 300, most=DAY)
ACCESS_TTL_SECONDS = number("auth_access_token_ttl_secs", 900, most=DAY)
REFRESH_TTL_SECONDS = number("auth_refresh_token_ttl_secs", 7 * DAY, most=YEAR)
REUSE_GRACE_SECONDS = number("auth_refresh_reuse_grace_secs", 0, least=0, most=60)
REGISTER_ACTIVATION_TTL_SECONDS = number("auth_register_activation_ttl_secs", DAY, most=YEAR)
CONTACT_CHANGE_TTL_SECONDS = number("auth_contact_change_ttl_secs", DAY, most=YEAR)
PASSWORD_RESET_TTL_SECONDS = number("auth_password_reset_ttl_secs", 3600, most=YEAR)
INVITATION_TTL_SECONDS = number("auth_user_invitation_ttl_secs", 3 * DAY, most=YEAR)
CONTACT_COOLDOWN_SECONDS = number("auth_contact_verification_resend_cooldown_secs", 60, most=DAY)
RESET_COOLDOWN_SECONDS = number("auth_password_reset_request_cooldown_secs", 60, most=DAY)
EMAIL_ALLOWLIST = setting_kinds.text_list("auth_local_email_allowlist", rules.email_policy_entry)
EMAIL_BLOCKLIST = setting_kinds.text_list("auth_local_email_blocklist", rules.email_policy_entry)

DEFAULT_STORAGE_QUOTA = number("default_storage_quota", 0, least=0)
GRAVATAR_BASE_URL = text(
    "gravatar_base_url", "https://www.gravatar.com/avatar", check=rules.http_url
)
AVATAR_MAX_UPLOAD_BYTES = number(
    "avatar_max_upload_size_bytes", 10 * 1024 * 1024, most=16 * 1024 * 1024
)

BRANDING_TITLE = text("branding_title", PRODUCT_TITLE, longest=120)
BRANDING_DESCRIPTION = text("branding_description", "", longest=300)
BRANDING_FAVICON_URL = text("branding_favicon_url", "/favicon.svg", check=rules.link)
BRANDING_WORDMARK_DARK_URL = text("branding_wordmark_dark_url", check=rules.link)
BRANDING_WORDMARK_LIGHT_URL = text("branding_wordmark_light_url", check=rules.link)

MAIL_SMTP_HOST = text("mail_smtp_host", longest=255)
MAIL_SMTP_PORT = number("mail_smtp_port", 587, most=65535)
MAIL_SMTP_USERNAME = text("mail_smtp_username", longest=255)
MAIL_SMTP_PASSWORD = text("mail_smtp_password", longest=1024, is_sensitive=True)
MAIL_FROM_ADDRESS = text("mail_from_address", longest=255, check=rules.mail_address)
MAIL_FROM_NAME = text("mail_from_name", PRODUCT_TITLE, longest=255)
MAIL_SECURITY = boolean("mail_security", default=True)
MAIL_DISPATCH_INTERVAL_SECONDS = number("mail_outbox_dispatch_interval_secs", 5, most=3600)
MAIL_TEMPLATES = (
    "register_activation",
    "contact_change_confirmation",
    "contact_change_notice",
    "password_reset",
    "password_reset_notice",
    "external_auth_email_verification",
    "login_email_code",
    "security_notice",
    "user_invitation",
)
MAIL_TEMPLATE_SUBJECTS = {
    name: text(f"mail_template_{name}_subject", longest=255) for name in MAIL_TEMPLATES
}
MAIL_TEMPLATE_HTML = {
    name: text(f"mail_template_{name}_html", longest=65_536, multiline=True)
    for name in MAIL_TEMPLATES
}

CLEANUP_INTERVAL_SECONDS = number("maintenance_cleanup_interval_secs", 3600, most=30 * DAY)
TEAM_MEMBER_LIST_MAX_LIMIT = number("team_member_list_max_limit", 100, most=10_000)
TEAM_ARCHIVE_RETENTION_DAYS = number("team_archive_retention_days", 7, least=0, most=36_500)
ARCHIVE_DOWNLOAD_USER = boolean("archive_download_user_enabled", default=True)
ARCHIVE_DOWNLOAD_SHARE = boolean("archive_download_share_enabled", default=True)
IMAGE_PREVIEW_PREFERENCE = setting_kinds.choice(
    "frontend_image_preview_preference", "original_first", ("original_first", "preview_first")
)


def _declared(namespace: dict[str, Any]) -> list[Key[Any]]:
    return [value for value in namespace.values() if isinstance(value, Key)]


ALL: dict[str, Key[Any]] = {
    key.name: key
    for key in (
        *_declared(globals()),
        *MAIL_TEMPLATE_SUBJECTS.values(),
        *MAIL_TEMPLATE_HTML.values(),
        *_declared(vars(audit)),
        *_declared(vars(cors)),
        *_declared(vars(site)),
    )
}
