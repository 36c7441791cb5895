"""What a settings page needs to know of each setting besides its value."""

from typing import Any

from app.core.setting_kinds import Key
from app.settings import keys
from app.settings.changes import SIGN_IN_SWITCHES

# By the beginning of the name; the longest that fits counts.
CATEGORIES = {
    "branding_": "site",
    "public_site_url": "site",
    "frontend_": "site",
    "archive_": "site",
    "pages_": "site",  # the console gives them a place of their own
    "auth_": "auth",
    "auth_allow_user_registration": "user.registration_and_login",
    "auth_email_code_": "user.registration_and_login",
    "auth_local_email_": "user.registration_and_login",
    "auth_passkey_login_enabled": "user.registration_and_login",
    "auth_password_login_enabled": "user.registration_and_login",
    "auth_register_": "user.registration_and_login",
    "auth_user_invitation_": "user.registration_and_login",
    "auth_strict_request_source": "network",
    "cors_": "network",
    "avatar_": "user.avatar",
    "gravatar_": "user.avatar",
    "mail_": "mail.config",
    "mail_template_": "mail.template",
    "mail_outbox_": "runtime.mail",
    "maintenance_": "runtime.maintenance",
    "default_storage_": "storage",
    "team_": "storage",
    "audit_": "audit",
}
UNITS = {"seconds", "bytes", "days"}
# What the page of sign-in methods and the look of the frontend depend on.
SHOWN_TO_VISITORS = (
    "branding_",
    "public_site_url",
    "auth_allow_user_registration",
    "auth_passkey_login_enabled",
    "auth_password_login_enabled",
)
SEND_TEST_MAIL = "send_test_email"
# Of POST /admin/config/{target_key}/action, and where pages may put its button.
TEST_MAIL = {
    "action": SEND_TEST_MAIL,
    "label_i18n_key": "mail_send_test_email",
    "target_key": "mail",
    "presentation": {"category": "mail", "subcategory": "config", "group": "test", "order": 10},
}
# To whom the stored SMTP password is sent, and how.
_GET_SECRETS = {key.name for key in (keys.MAIL_SMTP_HOST, keys.MAIL_SMTP_PORT, keys.MAIL_SECURITY)}
# Whose change asks for a recent confirmation, while the settings ask for any.
GUARDED = {"auth_confirmation_max_age_secs", *SIGN_IN_SWITCHES, *_GET_SECRETS} | {
    name for name, key in keys.ALL.items() if key.is_sensitive
}


def category_of(name: str) -> str:
    """Return the heading under which pages show a setting."""
    fitting = [beginning for beginning in CATEGORIES if name.startswith(beginning)]
    return CATEGORIES[max(fitting, key=len)]


def position_of(name: str) -> int:
    """Return the setting's place among all, from 1 on: its id on the wire."""
    return sorted(keys.ALL).index(name) + 1


def options_of(key: Key[Any]) -> list[dict[str, str]]:
    """Return the words that a setting takes; those of the audit log by who acts."""
    return [
        {
            "value": word,
            "label_i18n_key": f"settings_item_{key.name}_option_{word}",
            "group": word.partition("_")[0] if key.value_type == "string_enum_set" else "",
        }
        for word in key.options
    ]


def described(key: Key[Any]) -> dict[str, Any]:
    """Return what is told of a setting as such, apart from its default."""
    return {
        "key": key.name,
        "label_i18n_key": f"settings_item_{key.name}_label",
        "description_i18n_key": f"settings_item_{key.name}_desc",
        "value_type": key.value_type,
        "category": category_of(key.name),
        "description": key.description,
        "requires_restart": False,
        "is_sensitive": key.is_sensitive,
        "options": options_of(key),
        "actions": [TEST_MAIL] if key is keys.MAIL_SMTP_HOST else [],
        "invalidates": ["frontend_config"] if key.name.startswith(SHOWN_TO_VISITORS) else [],
        "minimum": key.minimum,
        "maximum": key.maximum,
        "unit": key.unit if key.unit in UNITS else None,
        "max_length": key.max_length,
        "item_kind": key.item_kind,
    }
