"""Pending identities store the session version of the account that owns the mailed address."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "external_auth_pending", sa.Column("owner_session_version", sa.BigInteger(), nullable=True)
    )


def downgrade() -> None:
    op.drop_column("external_auth_pending", "owner_session_version")
