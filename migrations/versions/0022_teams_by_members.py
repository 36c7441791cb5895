"""Changes of members are recorded as such, and what members do with their teams."""

import json

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

NEW = [
    "team_create",
    "team_update",
    "team_archive",
    "team_restore",
    "team_member_add",
    "team_member_update",
    "team_member_remove",
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
