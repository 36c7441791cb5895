"""Who has proven an address, which browser asked for a link, and the kinds of password hashes."""

import re

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
    op.execute(
        "UPDATE users SET proven_at = COALESCE(email_verified_at, created_at) "
        "WHERE activated_at IS NOT NULL"
    )
    for table in WITH_LINKS:
        op.add_column(table, sa.Column("browser_digest", sa.String(64), nullable=True))
    # What counted as 60 seconds is no valid value any more.
    stored = sa.table("system_config", sa.column("key"), sa.column("value"))
    of_confirmations = stored.c.key == "auth_confirmation_max_age_secs"
    too_low = stored.c.value.in_([str(seconds) for seconds in range(1, 60)])
    op.execute(stored.update().where(of_confirmations, too_low).values(value="60"))
    kinds = op.create_table(
        "password_hash_kinds", sa.Column("sample", sa.String(255), primary_key=True)
    )
    hashes = op.get_bind().execute(
        sa.text("SELECT password_hash FROM users WHERE password_hash IS NOT NULL")
    )
    if samples := {sample_of(hashed) for hashed in hashes.scalars() if "$" in hashed}:
        op.bulk_insert(kinds, [{"sample": sample} for sample in samples])


def sample_of(hashed: str) -> str:
    """Return a hash of the same kind and cost that is nobody's."""
    is_bcrypt = re.search(r"\$2[abxy]?\$\d\d\$", hashed)
    head = hashed.rsplit("$", 1 if is_bcrypt else 2)[0] + "$"
    return head + re.sub("[^=$]", "." if is_bcrypt else "A", hashed[len(head) :])


def downgrade() -> None:
    for table in WITH_LINKS:
        op.drop_column(table, "browser_digest")
    op.drop_column("users", "proven_at")
    op.drop_table("password_hash_kinds")
