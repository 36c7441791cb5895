"""Index for counting security notices per recipient."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

NAME = "ix_mail_outbox_notices"
IS_NOTICE = sa.text("template = 'security_notice'")


def upgrade() -> None:
    op.create_index(
        NAME,
        "mail_outbox",
        ["recipient", "created_at"],
        sqlite_where=IS_NOTICE,
        postgresql_where=IS_NOTICE,
    )


def downgrade() -> None:
    op.drop_index(NAME, "mail_outbox")
