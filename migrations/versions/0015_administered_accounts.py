"""What operators do to accounts is recorded, also where a list is stored."""

import json

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

NEW = [
    "admin_revoke_user_session",
    "admin_set_user_email",
    "admin_remove_user_passkey",
    "admin_remove_user_external_link",
    "admin_unlock_user",
    "admin_resend_invitation",
]
SETTINGS = sa.table("system_config", sa.column("key"), sa.column("value"))
RECORDED = SETTINGS.c.key == "audit_log_recorded_actions"


def upgrade() -> None:
    change_recorded(lambda listed: listed + [name for name in NEW if name not in listed])


def downgrade() -> None:
    change_recorded(lambda listed: [name for name in listed if name not in NEW])


def change_recorded(change) -> None:
    """Change the stored list, if there is one: without it, everything is recorded."""
    bind = op.get_bind()
    stored = bind.execute(sa.select(SETTINGS.c.value).where(RECORDED)).scalar()
    if stored:
        changed = json.dumps(change(json.loads(stored)))
        bind.execute(sa.update(SETTINGS).where(RECORDED).values(value=changed))
