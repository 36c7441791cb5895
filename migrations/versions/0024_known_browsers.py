"""Known browsers, the mails about new ones, and sessions that end with the window."""

import json

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

NEW = ["user_mfa_device_remove"]
SETTINGS = sa.table("system_config", sa.column("key"), sa.column("value"))
RECORDED = SETTINGS.c.key == "audit_log_recorded_actions"
WITH_LIFE = ("login_sessions", "external_auth_pending")
ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "browsers",
        sa.Column("id", ID, nullable=False),
        sa.Column("user_id", ID, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("ip_address", sa.String(45)),
        sa.Column("first_seen_at", MOMENT, nullable=False),
        sa.Column("last_seen_at", MOMENT, nullable=False),
        sa.Column("remembered_at", MOMENT),
        sa.Column("remembered_until", MOMENT),
        sa.Column("seen_since_reset", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_browsers_user_id_users"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_browsers")),
        sa.UniqueConstraint("user_id", "digest", name=op.f("uq_browsers_user_id_digest")),
        sqlite_autoincrement=True,
    )
    for column in ("digest", "last_seen_at"):
        op.create_index(op.f(f"ix_browsers_{column}"), "browsers", [column])
    for table in WITH_LIFE:
        is_short = sa.Column("is_short", sa.Boolean(), nullable=False, server_default=sa.false())
        op.add_column(table, is_short)
    is_new_sign_in = sa.text("template = 'new_sign_in'")
    op.create_index(
        "ix_mail_outbox_sign_ins",
        "mail_outbox",
        ["topic", "created_at"],
        sqlite_where=is_new_sign_in,
        postgresql_where=is_new_sign_in,
    )
    change_recorded(lambda listed: listed + [name for name in NEW if name not in listed])


def downgrade() -> None:
    change_recorded(lambda listed: [name for name in listed if name not in NEW])
    op.drop_index("ix_mail_outbox_sign_ins", "mail_outbox")
    for table in WITH_LIFE:
        op.drop_column(table, "is_short")
    op.drop_table("browsers")


def change_recorded(change) -> None:
    """Change the stored list, if there is one: without it, everything is recorded."""
    bind = op.get_bind()
    stored = bind.execute(sa.select(SETTINGS.c.value).where(RECORDED)).scalar()
    if stored:
        changed = json.dumps(change(json.loads(stored)))
        bind.execute(sa.update(SETTINGS).where(RECORDED).values(value=changed))
