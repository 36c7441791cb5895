"""Runtime settings of the audit log."""

from app.audit.models import Action
from app.core.setting_groups import Group
from app.core.setting_kinds import boolean, number, text_list

_ACTIONS = tuple(action.value for action in Action)


def _known_action(text: str) -> str:
    if text not in _ACTIONS:
        raise ValueError(f"{text!r} is not an audited action")
    return text


ENABLED = boolean(
    Group.AUDIT, "audit_log_enabled", "Whether anything is written to the audit log", default=True
)
RETENTION_DAYS = number(
    Group.AUDIT,
    "audit_log_retention_days",
    "How long audit entries are kept; 0 or less keeps them forever",
    90,
    unit="days",
    least=-(2**31),
    most=36500,
)
RECORDED_ACTIONS = text_list(
    Group.AUDIT,
    "audit_log_recorded_actions",
    "The actions that are written to the audit log; all of them by default",
    _known_action,
    example=(Action.USER_LOGIN.value, Action.USER_LOGOUT.value),
    default=_ACTIONS,
    options=_ACTIONS,
    refuses_duplicates=True,
)
