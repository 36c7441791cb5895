"""Mails that an operator tries by hand, and notices that belong together."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    hurried = sa.Column("is_hurried", sa.Boolean(), server_default=sa.false(), nullable=False)
    op.add_column("mail_outbox", hurried)
    op.add_column("mail_outbox", sa.Column("topic", sa.String(length=160), nullable=True))


def downgrade() -> None:
    op.drop_column("mail_outbox", "topic")
    op.drop_column("mail_outbox", "is_hurried")
