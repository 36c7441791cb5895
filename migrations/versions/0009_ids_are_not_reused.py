"""On SQLite, no id is given out again, not even that of a row known only from the audit log."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

# Which of a table's ids the audit log knows: the entries about such rows, and names in `details`.
TABLES = {
    "audit_log": (None, ()),
    "storage_policies": ("storage_policy", ()),
    "storage_policy_groups": ("policy_group", ("policy_group_id", "target_group_id")),
    "system_config": ("system_config", ()),
    "storage_policy_group_items": (None, ()),
    "users": ("user", ("user_id", "added_user_id", "changed_user_id", "removed_user_id")),
    "invitations": ("invitation", ()),
    "mfa_factors": ("mfa_factor", ()),
    "mfa_recovery_codes": (None, ()),
    "passkeys": ("passkey", ("passkey_id",)),
    "external_auth_providers": ("external_auth_provider", ()),
    "external_auth_identities": ("external_auth_identity", ()),
    "external_auth_pending": (None, ()),
    "teams": ("team", ()),
    "team_members": (None, ()),
}


def upgrade() -> None:
    rebuild(sqlite_autoincrement=True)
    if op.get_bind().dialect.name == "sqlite":
        for table in TABLES:
            go_on_after(table, highest_known(table))


def downgrade() -> None:
    rebuild(sqlite_autoincrement=False)


def rebuild(*, sqlite_autoincrement: bool) -> None:
    """Replace each table on SQLite; PostgreSQL's sequences give no number twice anyway."""
    if op.get_bind().dialect.name == "sqlite":
        options = {"sqlite_autoincrement": sqlite_autoincrement}
        for table in TABLES:
            with op.batch_alter_table(table, recreate="always", table_kwargs=options):
                pass


def highest_known(table: str) -> int:
    """Return the highest id that a row has, or had according to the audit log."""
    entity_type, names = TABLES[table]
    audit = sa.table(
        "audit_log",
        *(sa.column(name) for name in ("user_id", "entity_type", "entity_id", "details")),
    )
    rows = sa.table(table, sa.column("id"))
    known = [sa.select(rows.c.id)]
    known.append(sa.select(audit.c.entity_id).where(audit.c.entity_type == entity_type))
    known += [sa.select(sa.func.json_extract(audit.c.details, f"$.{name}")) for name in names]
    if table == "users":
        known.append(sa.select(audit.c.user_id))
    every = sa.union_all(*known).subquery()
    return op.get_bind().execute(sa.select(sa.func.max(every.c[0]))).scalar() or 0


def go_on_after(table: str, known: int) -> None:
    """Let the next row of a table have the id after `known`."""
    sequence = sa.table("sqlite_sequence", sa.column("name"), sa.column("seq"))
    op.execute(sequence.delete().where(sequence.c.name == table))
    op.execute(sequence.insert().values(name=table, seq=known))
