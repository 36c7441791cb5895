"""Runtime settings of the audit log (spec 04 §6.2)."""

from app.audit.models import Action
from app.core import setting_kinds

_ACTIONS = tuple(action.value for action in Action)


def _known_action(text: str) -> str:
    if text not in _ACTIONS:
        raise ValueError(f"{text!r} is no audited action")
    return text


ENABLED = setting_kinds.boolean("audit_log_enabled", default=True)
RETENTION_DAYS = setting_kinds.number("audit_log_retention_days", 90, least=-(2**31), most=36500)
RECORDED_ACTIONS = setting_kinds.text_list(
    "audit_log_recorded_actions",
    _known_action,
    default=_ACTIONS,
    options=_ACTIONS,
    refuses_duplicates=True,
)
