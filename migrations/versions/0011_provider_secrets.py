"""How a provider takes the client secret can be chosen."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "external_auth_providers",
        sa.Column("token_auth", sa.String(length=8), server_default="auto", nullable=False),
    )


def downgrade() -> None:
    op.drop_column("external_auth_providers", "token_auth")
