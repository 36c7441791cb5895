"""How often each action was recorded in each hour."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "audit_hourly",
        sa.Column("hour", sa.DateTime(timezone=True), nullable=False),
        sa.Column("action", sa.String(64), nullable=False),
        sa.Column("n", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("hour", "action", name="pk_audit_hourly"),
    )
    # What an overview asks: how many accounts are new, disabled or not activated yet, how many
    # sessions go on.
    op.create_index("ix_users_created_at", "users", ["created_at"])
    for name, condition in (
        ("ix_users_disabled", "status = 'disabled'"),
        ("ix_users_pending", "activated_at IS NULL"),
    ):
        where = sa.text(condition)
        op.create_index(name, "users", ["id"], sqlite_where=where, postgresql_where=where)


def downgrade() -> None:
    for name in ("ix_users_pending", "ix_users_disabled", "ix_users_created_at"):
        op.drop_index(name, "users")
    op.drop_table("audit_hourly")
