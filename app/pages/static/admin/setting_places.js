// @ts-check
// Where settings stand: what an operator looks for first comes first.

/** Texts of mails are changed on a page of their own. */
const ELSEWHERE = "mail.template";

/** @type {Record<string, string[]>} */
const TABS = {
  site: [
    "branding_title",
    "branding_description",
    "public_site_url",
    "branding_favicon_url",
    "branding_wordmark_light_url",
    "branding_wordmark_dark_url",
  ],
  sign_in: [
    "auth_password_login_enabled",
    "auth_passkey_login_enabled",
    "auth_email_code_login_enabled",
    "auth_email_code_login_allow_totp_fallback",
    "auth_email_code_login_ttl_secs",
    "auth_email_code_login_resend_cooldown_secs",
    "auth_password_blocklist_enabled",
    "auth_password_breach_check",
    "auth_password_reset_ttl_secs",
    "auth_password_reset_request_cooldown_secs",
    "auth_mfa_flow_ttl_secs",
    "auth_mfa_trusted_device_secs",
    "auth_new_browser_notice",
    "auth_passkey_flow_ttl_secs",
    "auth_external_flow_ttl_secs",
  ],
  registration: [
    "auth_allow_user_registration",
    "auth_register_activation_enabled",
    "auth_register_activation_ttl_secs",
    "auth_unactivated_keep_days",
    "auth_user_invitation_ttl_secs",
    "auth_local_email_allowlist",
    "auth_local_email_blocklist",
    "auth_reserved_usernames",
  ],
  mail: [
    "mail_smtp_host",
    "mail_smtp_port",
    "mail_security",
    "mail_smtp_username",
    "mail_smtp_password",
    "mail_from_address",
    "mail_from_name",
    "mail_helo_name",
    "mail_outbox_dispatch_interval_secs",
  ],
  pages: [
    "pages_accent_color",
    "pages_theme",
    "pages_languages",
    "pages_message",
    "pages_footer_links",
    "pages_home_path",
    "pages_sections",
  ],
  accounts: [
    "auth_account_export_enabled",
    "auth_account_deletion_enabled",
    "auth_contact_change_ttl_secs",
    "auth_contact_verification_resend_cooldown_secs",
    "avatar_max_upload_size_bytes",
    "gravatar_base_url",
  ],
  sessions: [
    "auth_refresh_token_ttl_secs",
    "auth_short_session_secs",
    "auth_access_token_ttl_secs",
    "auth_refresh_reuse_grace_secs",
    "auth_access_tokens_enabled",
    "auth_access_token_max_days",
    "auth_confirmation_max_age_secs",
    "auth_cookie_secure",
  ],
  network: [
    "cors_enabled",
    "cors_allowed_origins",
    "cors_allow_credentials",
    "cors_max_age_secs",
    "auth_strict_request_source",
  ],
  storage: [
    "default_storage_quota",
    "teams_self_service",
    "team_archive_retention_days",
    "team_member_list_max_limit",
    "archive_download_user_enabled",
    "archive_download_share_enabled",
    "frontend_image_preview_preference",
  ],
  audit: [
    "audit_log_enabled",
    "audit_log_retention_days",
    "maintenance_cleanup_interval_secs",
    "audit_log_recorded_actions",
  ],
};
const ORDER = Object.values(TABS).flat();

export const tabs = Object.keys(TABS);

/** @param {string} key */
function tabOf(key) {
  return tabs.find((tab) => TABS[tab]?.includes(key)) ?? "";
}

/**
 * The settings that the page shows, in their order, each with its tab.
 * @template {{ key: string, category: string }} T
 * @param {T[]} settings
 */
export function placed(settings) {
  return settings
    .filter(({ key, category }) => category !== ELSEWHERE && ORDER.includes(key))
    .map((one) => ({ ...one, tab: tabOf(one.key) }))
    .sort((one, other) => ORDER.indexOf(one.key) - ORDER.indexOf(other.key));
}

/**
 * The tab that an address names, also by a category of the API.
 * @param {string} name
 * @param {{ category: string, tab: string }[]} settings
 */
export function tabNamed(name, settings) {
  if (tabs.includes(name)) return name;
  return settings.find(({ category }) => category === name)?.tab ?? String(tabs[0]);
}
