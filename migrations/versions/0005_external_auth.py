"""External sign-in: providers, linked identities, and identities pending an account."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
CLAIMS = (
    "subject_claim",
    "username_claim",
    "display_name_claim",
    "email_claim",
    "email_verified_claim",
    "groups_claim",
    "avatar_url_claim",
)
FLAGS = (
    "enabled",
    "auto_provision_enabled",
    "auto_link_verified_email_enabled",
    "require_email_verified",
)


def upgrade() -> None:
    op.create_table(
        "external_auth_providers",
        sa.Column("id", ID, nullable=False),
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("provider_kind", sa.String(length=32), nullable=False),
        sa.Column("display_name", sa.String(length=128), nullable=False),
        sa.Column("icon_url", sa.String(length=2048), nullable=True),
        sa.Column("options", sa.Text(), nullable=False),
        sa.Column("issuer_url", sa.String(length=512), nullable=True),
        sa.Column("authorization_url", sa.String(length=2048), nullable=True),
        sa.Column("token_url", sa.String(length=2048), nullable=True),
        sa.Column("userinfo_url", sa.String(length=2048), nullable=True),
        sa.Column("client_id", sa.String(length=512), nullable=False),
        sa.Column("client_secret", sa.Text(), nullable=True),
        sa.Column("scopes", sa.Text(), nullable=False),
        *(sa.Column(name, sa.Boolean(), nullable=False) for name in FLAGS),
        *(sa.Column(name, sa.String(length=128), nullable=True) for name in CLAIMS),
        sa.Column("allowed_domains", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_external_auth_providers")),
        sa.UniqueConstraint(
            "provider_kind", "key", name=op.f("uq_external_auth_providers_provider_kind_key")
        ),
    )
    op.create_table(
        "external_auth_identities",
        sa.Column("id", ID, nullable=False),
        sa.Column("user_id", ID, nullable=False),
        sa.Column("provider_id", ID, nullable=False),
        sa.Column("identity_namespace", sa.String(length=512), nullable=False),
        sa.Column("subject", sa.String(length=255), nullable=False),
        sa.Column("email_snapshot", sa.String(length=255), nullable=True),
        sa.Column("display_name_snapshot", sa.String(length=255), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_login_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["user_id"],
            ["users.id"],
            name=op.f("fk_external_auth_identities_user_id_users"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["provider_id"],
            ["external_auth_providers.id"],
            name=op.f("fk_external_auth_identities_provider_id_external_auth_providers"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_external_auth_identities")),
        sa.UniqueConstraint(
            "identity_namespace",
            "subject",
            name=op.f("uq_external_auth_identities_identity_namespace_subject"),
        ),
        sa.UniqueConstraint(
            "provider_id", "subject", name=op.f("uq_external_auth_identities_provider_id_subject")
        ),
        sa.UniqueConstraint(
            "user_id", "provider_id", name=op.f("uq_external_auth_identities_user_id_provider_id")
        ),
    )
    op.create_table(
        "external_auth_pending",
        sa.Column("id", ID, nullable=False),
        sa.Column("provider_id", ID, nullable=False),
        sa.Column("identity_namespace", sa.String(length=512), nullable=False),
        sa.Column("subject", sa.String(length=255), nullable=False),
        sa.Column("display_name_snapshot", sa.String(length=255), nullable=True),
        sa.Column("preferred_username_snapshot", sa.String(length=255), nullable=True),
        sa.Column("return_path", sa.String(length=2048), nullable=False),
        sa.Column("flow_token_digest", sa.String(length=64), nullable=False),
        sa.Column("target_email", sa.String(length=255), nullable=True),
        sa.Column("verification_token_digest", sa.String(length=64), nullable=True),
        sa.Column("email_requested_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("consumed_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["provider_id"],
            ["external_auth_providers.id"],
            name=op.f("fk_external_auth_pending_provider_id_external_auth_providers"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_external_auth_pending")),
        sa.UniqueConstraint(
            "flow_token_digest", name=op.f("uq_external_auth_pending_flow_token_digest")
        ),
        sa.UniqueConstraint(
            "verification_token_digest",
            name=op.f("uq_external_auth_pending_verification_token_digest"),
        ),
    )
    op.create_index(
        op.f("ix_external_auth_pending_provider_id"),
        "external_auth_pending",
        ["provider_id"],
    )
    op.create_index(
        op.f("ix_external_auth_pending_expires_at"), "external_auth_pending", ["expires_at"]
    )


def downgrade() -> None:
    op.drop_table("external_auth_pending")
    op.drop_table("external_auth_identities")
    op.drop_table("external_auth_providers")
