"""When the owner of a session last proved to be the owner."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Sessions of the version before were last proven when they were opened.
    with op.batch_alter_table("login_sessions") as table:
        table.add_column(sa.Column("confirmed_at", sa.DateTime(timezone=True)))
    op.execute("UPDATE login_sessions SET confirmed_at = created_at")
    with op.batch_alter_table("login_sessions") as table:
        # Instances of that version, which do not know the column, go on opening sessions.
        table.alter_column(
            "confirmed_at",
            existing_type=sa.DateTime(timezone=True),
            nullable=False,
            server_default=sa.func.now(),
        )


def downgrade() -> None:
    with op.batch_alter_table("login_sessions") as table:
        table.drop_column("confirmed_at")
