"""Who has set a setting."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("system_config") as table:
        table.add_column(sa.Column("updated_by", sa.BigInteger()))


def downgrade() -> None:
    with op.batch_alter_table("system_config") as table:
        table.drop_column("updated_by")
