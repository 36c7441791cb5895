"""Lists that begin with the newest are read from an index, however many are of one moment."""

from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

TABLES = ("users", "audit_log")


def upgrade() -> None:
    for table in TABLES:
        op.drop_index(f"ix_{table}_created_at", table)
        op.create_index(f"ix_{table}_created_at", table, ["created_at", "id"])


def downgrade() -> None:
    for table in TABLES:
        op.drop_index(f"ix_{table}_created_at", table)
        op.create_index(f"ix_{table}_created_at", table, ["created_at"])
