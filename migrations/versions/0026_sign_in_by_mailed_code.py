"""Sign-ins with a mailed code are recorded, also where the actions to record were chosen."""

import json

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None

NEW = "user_email_code_sign_in"
SETTINGS = sa.table("system_config", sa.column("key"), sa.column("value"))
RECORDED = SETTINGS.c.key == "audit_log_recorded_actions"


def upgrade() -> None:
    change_recorded(lambda listed: [*listed, *({NEW} - set(listed))])


def downgrade() -> None:
    change_recorded(lambda listed: [name for name in listed if name != NEW])


def change_recorded(change) -> None:
    """Change the stored list, if there is one: without it, everything is recorded."""
    bind = op.get_bind()
    stored = bind.execute(sa.select(SETTINGS.c.value).where(RECORDED)).scalar()
    if stored:
        changed = json.dumps(change(json.loads(stored)))
        bind.execute(sa.update(SETTINGS).where(RECORDED).values(value=changed))
