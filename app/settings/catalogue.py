"""What a settings page needs to know of each setting besides its value."""

from typing import Any

from app.core import product
from app.core.setting_kinds import Key
from app.settings import keys, mail_keys

UNITS = ("seconds", "bytes", "days")
SEND_TEST_MAIL = "send_test_email"
# Of POST /admin/config/{target_key}/action, and where pages may put its button.
TEST_MAIL = {
    "action": SEND_TEST_MAIL,
    "label_i18n_key": "mail_send_test_email",
    "target_key": "mail",
    "presentation": {"category": "mail", "subcategory": "config", "group": "test", "order": 10},
}
# Whose change asks for a recent confirmation, while the settings ask for any.
GUARDED = {
    name for name, key in keys.ALL.items() if key.is_guarded or key.is_sensitive or key.notice
}


def position_of(name: str) -> int:
    """Return the setting's place among all, from 1 on: its id on the wire."""
    return sorted(keys.ALL).index(name) + 1


def options_of(key: Key[Any]) -> list[dict[str, str]]:
    """Return the words that a setting takes; those of the audit log by who acts."""
    label = product.OPTION_TEXTS.get(key.name, f"settings_item_{key.name}_option_{{}}")
    return [
        {
            "value": word,
            "label_i18n_key": label.format(product.ACTION_TEXTS.get(word, word)),
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
        "category": key.group.category,
        "description": key.description,
        "requires_restart": product.SETTING["requires_restart"],
        "is_sensitive": key.is_sensitive,
        "options": options_of(key),
        "actions": [TEST_MAIL] if key is mail_keys.MAIL_SMTP_HOST else [],
        "invalidates": ["frontend_config"] if key.is_public else [],
        "minimum": key.minimum,
        "maximum": key.maximum,
        "unit": key.unit if key.unit in UNITS else None,
        "max_length": key.max_length,
        "item_kind": key.item_kind,
    }
