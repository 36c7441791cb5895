"""Pages of the audit log need no scan; actions that are new are recorded as well."""

import json

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

NEW = ["user_confirm_identity", "admin_restore_team", "admin_export_audit_log"]
SETTINGS = sa.table("system_config", sa.column("key"), sa.column("value"))
RECORDED = SETTINGS.c.key == "audit_log_recorded_actions"


def upgrade() -> None:
    op.create_index("ix_audit_log_action_created_at", "audit_log", ["action", "created_at"])
    about = ["entity_type", "entity_id", "created_at"]
    op.create_index("ix_audit_log_entity_created_at", "audit_log", about)
    change_recorded(lambda listed: listed + [name for name in NEW if name not in listed])


def downgrade() -> None:
    change_recorded(lambda listed: [name for name in listed if name not in NEW])
    op.drop_index("ix_audit_log_entity_created_at", "audit_log")
    op.drop_index("ix_audit_log_action_created_at", "audit_log")


def change_recorded(change) -> None:
    """Change the stored list, if there is one: without it, everything is recorded."""
    bind = op.get_bind()
    stored = bind.execute(sa.select(SETTINGS.c.value).where(RECORDED)).scalar()
    if stored:
        changed = json.dumps(change(json.loads(stored)))
        bind.execute(sa.update(SETTINGS).where(RECORDED).values(value=changed))
