"""Accounts, sessions, settings, audit log and storage policies."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "audit_log",
        sa.Column("id", ID, nullable=False),
        sa.Column("user_id", sa.BigInteger(), nullable=False),
        sa.Column("action", sa.String(length=64), nullable=False),
        sa.Column("entity_type", sa.String(length=32), nullable=False),
        sa.Column("entity_id", sa.BigInteger(), nullable=True),
        sa.Column("entity_name", sa.String(length=255), nullable=True),
        sa.Column("details", sa.Text(), nullable=True),
        sa.Column("ip_address", sa.String(length=128), nullable=True),
        sa.Column("user_agent", sa.String(length=512), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit_log")),
    )
    op.create_index(op.f("ix_audit_log_created_at"), "audit_log", ["created_at"])
    op.create_index(op.f("ix_audit_log_user_id_created_at"), "audit_log", ["user_id", "created_at"])

    op.create_table(
        "named_locks",
        sa.Column("name", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_named_locks")),
    )
    op.create_table(
        "storage_policies",
        sa.Column("id", ID, nullable=False),
        sa.Column("name", sa.String(length=128), nullable=False),
        sa.Column("connector_id", sa.String(length=64), nullable=False),
        sa.Column("options", sa.Text(), nullable=False),
        sa.Column("max_file_size", sa.BigInteger(), nullable=False),
        sa.Column("allowed_types", sa.Text(), nullable=False),
        sa.Column("is_default", sa.Boolean(), nullable=False),
        sa.Column("chunk_size", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_storage_policies")),
    )
    op.create_table(
        "storage_policy_groups",
        sa.Column("id", ID, nullable=False),
        sa.Column("name", sa.String(length=128), nullable=False),
        sa.Column("description", sa.String(length=512), nullable=False),
        sa.Column("is_enabled", sa.Boolean(), nullable=False),
        sa.Column("is_default", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_storage_policy_groups")),
    )
    op.create_table(
        "system_config",
        sa.Column("id", ID, nullable=False),
        sa.Column("key", sa.String(length=128), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_system_config")),
        sa.UniqueConstraint("key", name=op.f("uq_system_config_key")),
    )
    op.create_table(
        "storage_policy_group_items",
        sa.Column("id", ID, nullable=False),
        sa.Column("group_id", ID, nullable=False),
        sa.Column("policy_id", ID, nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("min_file_size", sa.BigInteger(), nullable=False),
        sa.Column("max_file_size", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["group_id"],
            ["storage_policy_groups.id"],
            name=op.f("fk_storage_policy_group_items_group_id_storage_policy_groups"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["policy_id"],
            ["storage_policies.id"],
            name=op.f("fk_storage_policy_group_items_policy_id_storage_policies"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_storage_policy_group_items")),
        sa.UniqueConstraint(
            "group_id", "policy_id", name=op.f("uq_storage_policy_group_items_group_id_policy_id")
        ),
        sa.UniqueConstraint(
            "group_id", "priority", name=op.f("uq_storage_policy_group_items_group_id_priority")
        ),
    )
    op.create_index(
        op.f("ix_storage_policy_group_items_policy_id"), "storage_policy_group_items", ["policy_id"]
    )

    op.create_table(
        "users",
        sa.Column("id", ID, nullable=False),
        sa.Column("username", sa.String(length=64), nullable=False),
        sa.Column("username_key", sa.String(length=64), nullable=False),
        sa.Column("email", sa.String(length=255), nullable=False),
        sa.Column("pending_email", sa.String(length=255), nullable=True),
        sa.Column("password_hash", sa.String(length=255), nullable=True),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("must_change_password", sa.Boolean(), nullable=False),
        sa.Column("session_version", sa.BigInteger(), nullable=False),
        sa.Column("activated_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("email_verified_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("storage_used", sa.BigInteger(), nullable=False),
        sa.Column("storage_quota", sa.BigInteger(), nullable=False),
        sa.Column("policy_group_id", ID, nullable=True),
        sa.Column("preferences", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["policy_group_id"],
            ["storage_policy_groups.id"],
            name=op.f("fk_users_policy_group_id_storage_policy_groups"),
            ondelete="SET NULL",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_users")),
        sa.UniqueConstraint("email", name=op.f("uq_users_email")),
        sa.UniqueConstraint("pending_email", name=op.f("uq_users_pending_email")),
        sa.UniqueConstraint("username_key", name=op.f("uq_users_username_key")),
    )
    op.create_index(op.f("ix_users_policy_group_id"), "users", ["policy_group_id"])
    op.create_index(
        op.f("ix_users_role_admin"),
        "users",
        ["role"],
        sqlite_where=sa.text("role = 'admin'"),
        postgresql_where=sa.text("role = 'admin'"),
    )

    op.create_table(
        "login_sessions",
        sa.Column("id", sa.Uuid(as_uuid=False), nullable=False),
        sa.Column("user_id", ID, nullable=False),
        sa.Column("refresh_selector", sa.String(length=64), nullable=False),
        sa.Column("refresh_digest", sa.String(length=64), nullable=False),
        sa.Column("previous_digest", sa.String(length=64), nullable=True),
        sa.Column("is_limited", sa.Boolean(), nullable=False),
        sa.Column("ip_address", sa.String(length=45), nullable=True),
        sa.Column("user_agent", sa.String(length=512), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["user_id"],
            ["users.id"],
            name=op.f("fk_login_sessions_user_id_users"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_login_sessions")),
        sa.UniqueConstraint("refresh_selector", name=op.f("uq_login_sessions_refresh_selector")),
    )
    op.create_index(op.f("ix_login_sessions_user_id"), "login_sessions", ["user_id"])

    op.create_table(
        "user_profiles",
        sa.Column("user_id", ID, autoincrement=False, nullable=False),
        sa.Column("display_name", sa.String(length=64), nullable=True),
        sa.Column("avatar_source", sa.String(length=16), nullable=False),
        sa.Column("avatar_key", sa.String(length=512), nullable=True),
        sa.Column("avatar_version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"],
            ["users.id"],
            name=op.f("fk_user_profiles_user_id_users"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("user_id", name=op.f("pk_user_profiles")),
    )
    _seed()


def _seed() -> None:
    """Insert the lock rows, and the one setting that does not start at its fail-safe default."""
    locks = sa.table("named_locks", sa.column("name", sa.String))
    op.bulk_insert(
        locks, [{"name": name} for name in ("setup", "login_methods", "storage_topology")]
    )
    settings = sa.table(
        "system_config",
        sa.column("key", sa.String),
        sa.column("value", sa.Text),
        sa.column("updated_at", sa.DateTime(timezone=True)),
    )
    # The first visit is often plain http on localhost; a set-up over https switches this on.
    op.execute(
        settings.insert().values(
            key="auth_cookie_secure", value="false", updated_at=sa.func.current_timestamp()
        )
    )


def downgrade() -> None:

    op.drop_table("user_profiles")

    op.drop_table("login_sessions")

    op.drop_table("users")

    op.drop_table("storage_policy_group_items")
    op.drop_table("system_config")
    op.drop_table("storage_policy_groups")
    op.drop_table("storage_policies")
    op.drop_table("named_locks")

    op.drop_table("audit_log")
