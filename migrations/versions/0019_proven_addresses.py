"""Whether the owner of an address has acted in person, and which browser asked for a mailed link."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

WITH_LINKS = ("contact_verification_tokens", "external_auth_pending")


def upgrade() -> None:
    op.add_column("users", sa.Column("proven_at", sa.DateTime(timezone=True), nullable=True))
    # Nobody is asked again who could use an account before this was remembered.
    op.execute("UPDATE users SET proven_at = COALESCE(email_verified_at, created_at)")
    for table in WITH_LINKS:
        op.add_column(table, sa.Column("browser_digest", sa.String(64), nullable=True))


def downgrade() -> None:
    for table in WITH_LINKS:
        op.drop_column(table, "browser_digest")
    op.drop_column("users", "proven_at")
