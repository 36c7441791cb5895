"""Access tokens for programs; what is done with them is recorded."""

import json

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
NEW = [
    "user_token_create",
    "user_token_rename",
    "user_token_delete",
    "admin_create_user_token",
    "admin_remove_user_token",
]
SETTINGS = sa.table("system_config", sa.column("key"), sa.column("value"))
RECORDED = SETTINGS.c.key == "audit_log_recorded_actions"


def upgrade() -> None:
    op.create_table(
        "access_tokens",
        sa.Column("id", ID, nullable=False),
        sa.Column("user_id", ID, nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("prefix", sa.String(length=8), nullable=False),
        sa.Column("scopes", sa.String(length=255), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_used_ip", sa.String(length=45), nullable=True),
        sa.ForeignKeyConstraint(
            ["user_id"],
            ["users.id"],
            name=op.f("fk_access_tokens_user_id_users"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_access_tokens")),
        sa.UniqueConstraint("digest", name=op.f("uq_access_tokens_digest")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_access_tokens_user_id"), "access_tokens", ["user_id"])
    change_recorded(lambda listed: listed + [name for name in NEW if name not in listed])


def downgrade() -> None:
    op.drop_table("access_tokens")
    change_recorded(lambda listed: [name for name in listed if name not in NEW])


def change_recorded(change) -> None:
    """Change the stored list, if there is one: without it, everything is recorded."""
    bind = op.get_bind()
    stored = bind.execute(sa.select(SETTINGS.c.value).where(RECORDED)).scalar()
    if stored:
        changed = json.dumps(change(json.loads(stored)))
        bind.execute(sa.update(SETTINGS).where(RECORDED).values(value=changed))
