"""The runtime settings, and the registry of all keys, with those of `audit` and `web`."""

from typing import Any

from app.audit import keys as audit
from app.core import email_address
from app.core.setting_groups import Group
from app.core.setting_kinds import DAY, Key, boolean, choice, number, seconds, text, text_list
from app.settings import frontend_keys, mail_keys, page_keys
from app.settings.frontend_keys import http_url
from app.web import cors, guards, site

YEAR = 365 * DAY

_ADDRESSES = ("example.com", "ada@example.net")


def _email_policy_entry(entry: str) -> str:
    """Return an exact address or an ASCII domain, in lower case; `@domain` means `domain`."""
    # The lower case of the Kelvin sign is the letter k, which would hide that it is not ASCII.
    lowered = entry.lower() if entry.isascii() else entry
    domain = lowered.removeprefix("@")
    if not (email_address.is_domain(domain) or _is_address(lowered)):
        raise ValueError(
            f"{entry!r} must be an e-mail address or a domain, internationalised ones in punycode"
        )
    return domain


def _is_address(entry: str) -> bool:
    """Return whether an entry is a normalised address, as stored for accounts, so it can match."""
    try:
        return email_address.normalized(entry) == entry
    except ValueError:
        return False


PASSWORD_LOGIN_ENABLED = boolean(
    Group.REGISTRATION,
    "auth_password_login_enabled",
    "Whether accounts sign in with a password",
    default=True,
    is_public=True,
    notice="Signing in with a password",
)
PASSWORD_BLOCKLIST_ENABLED = boolean(
    Group.SIGN_IN,
    "auth_password_blocklist_enabled",
    "Whether new passwords that are common, or the account's own name, are refused",
    default=False,
)
PASSWORD_BREACH_CHECK = choice(
    Group.SIGN_IN,
    "auth_password_breach_check",
    "Whether new passwords that are in the list of GATEHOUSE_BREACHED_PASSWORDS are refused; auto: "
    "while there is a list",
    "auto",
    ("auto", "off"),
)
ACCOUNT_EXPORT_ENABLED = boolean(
    Group.SIGN_IN,
    "auth_account_export_enabled",
    "Whether people can download what is stored about them",
    default=True,
)
ACCOUNT_DELETION_ENABLED = boolean(
    Group.SIGN_IN,
    "auth_account_deletion_enabled",
    "Whether people can delete their own account",
    default=True,
)
PASSKEY_LOGIN_ENABLED = boolean(
    Group.REGISTRATION,
    "auth_passkey_login_enabled",
    "Whether accounts sign in with a passkey",
    default=True,
    is_public=True,
    notice="Signing in with a passkey",
)
ALLOW_USER_REGISTRATION = boolean(
    Group.REGISTRATION,
    "auth_allow_user_registration",
    "Whether anybody may register; invitations work either way",
    default=True,
    is_public=True,
)
REGISTER_ACTIVATION = choice(
    Group.REGISTRATION,
    "auth_register_activation_enabled",
    "Whether a new account must first be activated with a mailed link; auto: if mail is set up",
    "auto",
    ("auto", "true", "false"),
    is_switch=True,
)
EMAIL_CODE_LOGIN_ENABLED = boolean(
    Group.REGISTRATION,
    "auth_email_code_login_enabled",
    "Whether a mailed code is a second factor at login; needs mail_smtp_host and mail_from_address",
    default=False,
    notice="The mailed code as a second factor",
)
EMAIL_CODE_TOTP_FALLBACK = boolean(
    Group.REGISTRATION,
    "auth_email_code_login_allow_totp_fallback",
    "Whether accounts with an authenticator app may use a mailed code as well",
    default=False,
)
EMAIL_CODE_TTL_SECONDS = seconds(
    Group.REGISTRATION,
    "auth_email_code_login_ttl_secs",
    "How long a mailed login code is valid",
    600,
)
EMAIL_CODE_COOLDOWN_SECONDS = seconds(
    Group.REGISTRATION,
    "auth_email_code_login_resend_cooldown_secs",
    "How long to wait before another login code is mailed",
    60,
)
MFA_FLOW_TTL_SECONDS = seconds(
    Group.SIGN_IN,
    "auth_mfa_flow_ttl_secs",
    "How much time there is to enter a second factor, or to set up an authenticator app",
    300,
)
PASSKEY_FLOW_TTL_SECONDS = seconds(
    Group.SIGN_IN,
    "auth_passkey_flow_ttl_secs",
    "How much time there is to answer the browser's request for a passkey",
    300,
)
EXTERNAL_FLOW_TTL_SECONDS = seconds(
    Group.SIGN_IN,
    "auth_external_flow_ttl_secs",
    "How much time there is to sign in at an external provider",
    300,
)
ACCESS_TTL_SECONDS = seconds(
    Group.SIGN_IN,
    "auth_access_token_ttl_secs",
    "How long an access token is valid before it is refreshed",
    900,
)
REFRESH_TTL_SECONDS = seconds(
    Group.SIGN_IN,
    "auth_refresh_token_ttl_secs",
    "How long a session lasts without a refresh",
    7 * DAY,
    most=YEAR,
)
SHORT_SESSION_SECONDS = seconds(
    Group.SIGN_IN,
    "auth_short_session_secs",
    "How long a session lasts without a refresh if its owner did not choose to stay signed in; "
    "never longer than others",
    43_200,
    least=300,
    most=YEAR,
)
TRUSTED_DEVICE_SECONDS = number(
    Group.SIGN_IN,
    "auth_mfa_trusted_device_secs",
    "How long a browser that was remembered is not asked for the second step; 0 remembers none, "
    "and forgets those that were",
    0,
    unit="seconds",
    least=3600,
    most=90 * DAY,
    is_off_at_zero=True,
)
NEW_BROWSER_NOTICE = boolean(
    Group.SIGN_IN,
    "auth_new_browser_notice",
    "Whether people get a mail when a browser signs in to their account for the first time",
    default=True,
)
ACCESS_TOKENS_ENABLED = boolean(
    Group.SIGN_IN,
    "auth_access_tokens_enabled",
    "Whether people can give access tokens to programs; without it, those that exist open nothing",
    default=True,
)
ACCESS_TOKEN_MAX_DAYS = number(
    Group.SIGN_IN,
    "auth_access_token_max_days",
    "How many days a new access token may be valid; 0 sets no limit",
    365,
    unit="days",
    least=0,
    most=3650,
)
REUSE_GRACE_SECONDS = seconds(
    Group.SIGN_IN,
    "auth_refresh_reuse_grace_secs",
    "How long a used refresh token raises no alarm when the same browser sends it",
    0,
    least=0,
    most=60,
)
REGISTER_ACTIVATION_TTL_SECONDS = seconds(
    Group.REGISTRATION,
    "auth_register_activation_ttl_secs",
    "How long the mailed link for a registration is valid",
    DAY,
    most=YEAR,
)
UNACTIVATED_KEEP_DAYS = number(
    Group.SIGN_IN,
    "auth_unactivated_keep_days",
    "How many days an account may wait for activation; then it is deleted, and name and address "
    "are free again",
    7,
    unit="days",
    least=1,
    most=3650,
)
CONTACT_CHANGE_TTL_SECONDS = seconds(
    Group.SIGN_IN,
    "auth_contact_change_ttl_secs",
    "How long the mailed link for a change of address is valid",
    DAY,
    most=YEAR,
)
PASSWORD_RESET_TTL_SECONDS = seconds(
    Group.SIGN_IN,
    "auth_password_reset_ttl_secs",
    "How long the mailed link for a password reset is valid",
    3600,
    most=YEAR,
)
INVITATION_TTL_SECONDS = seconds(
    Group.REGISTRATION,
    "auth_user_invitation_ttl_secs",
    "How long an invitation is valid",
    3 * DAY,
    most=YEAR,
)
CONTACT_COOLDOWN_SECONDS = seconds(
    Group.SIGN_IN,
    "auth_contact_verification_resend_cooldown_secs",
    "How long to wait before the link for a registration or change of address is mailed again",
    60,
)
RESET_COOLDOWN_SECONDS = seconds(
    Group.SIGN_IN,
    "auth_password_reset_request_cooldown_secs",
    "How long to wait before another password reset is mailed",
    60,
)
RESERVED_USERNAMES = text_list(
    Group.SIGN_IN,
    "auth_reserved_usernames",
    "Usernames, whatever their case, that only operators give; nor can names of digits be chosen",
    str.lower,
    example=("admin", "support"),
    default=(
        *("admin", "administrator", "root", "system", "support", "security", "postmaster"),
        *("hostmaster", "webmaster", "abuse", "noreply", "no-reply", "me", "null", "undefined"),
    ),
)
EMAIL_ALLOWLIST = text_list(
    Group.REGISTRATION,
    "auth_local_email_allowlist",
    "The only addresses and domains allowed to register here and as new addresses; empty allows "
    "all; providers have allowed_domains of their own",
    _email_policy_entry,
    example=_ADDRESSES,
    item_kind="email_or_domain",
)
EMAIL_BLOCKLIST = text_list(
    Group.REGISTRATION,
    "auth_local_email_blocklist",
    "Addresses and domains that cannot register here or be changed to, even if allowed above; "
    "providers have allowed_domains of their own",
    _email_policy_entry,
    example=_ADDRESSES,
    item_kind="email_or_domain",
)

DEFAULT_STORAGE_QUOTA = number(
    Group.STORAGE,
    "default_storage_quota",
    "The storage quota of a new account or team; 0 means no limit",
    0,
    unit="bytes",
    least=0,
)
GRAVATAR_BASE_URL = text(
    Group.AVATARS,
    "gravatar_base_url",
    "Where avatars with the source gravatar come from; empty means the default",
    "https://www.gravatar.com/avatar",
    check=http_url,
)
AVATAR_MAX_UPLOAD_BYTES = number(
    Group.AVATARS,
    "avatar_max_upload_size_bytes",
    "The largest picture that may be uploaded as an avatar",
    10 * 1024 * 1024,
    unit="bytes",
    most=16 * 1024 * 1024,
)


CLEANUP_INTERVAL_SECONDS = seconds(
    Group.MAINTENANCE,
    "maintenance_cleanup_interval_secs",
    "How often expired rows and leftover files are deleted",
    3600,
    most=30 * DAY,
)
TEAM_MEMBER_LIST_MAX_LIMIT = number(
    Group.STORAGE,
    "team_member_list_max_limit",
    "The longest page of a team's members; used by the file service only",
    100,
    unit="members",
    most=10_000,
)
TEAMS_SELF_SERVICE = boolean(
    Group.STORAGE,
    "teams_self_service",
    "Whether everybody can create teams, each with the default quota; without it, only "
    "administrators can",
    default=True,
)
TEAM_ARCHIVE_RETENTION_DAYS = number(
    Group.STORAGE,
    "team_archive_retention_days",
    "How long an archived team is kept before it is deleted",
    7,
    unit="days",
    least=0,
    most=36_500,
)


def _declared(namespace: dict[str, Any]) -> list[Key[Any]]:
    return [value for value in namespace.values() if isinstance(value, Key)]


ALL: dict[str, Key[Any]] = {
    key.name: key
    for key in (
        *_declared(globals()),
        *mail_keys.MAIL_TEMPLATE_SUBJECTS.values(),
        *mail_keys.MAIL_TEMPLATE_HTML.values(),
        *_declared(vars(mail_keys)),
        *_declared(vars(frontend_keys)),
        *_declared(vars(page_keys)),
        *_declared(vars(audit)),
        *_declared(vars(cors)),
        *_declared(vars(guards)),
        *_declared(vars(site)),
    )
}
