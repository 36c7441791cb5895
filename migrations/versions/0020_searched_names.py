"""Names are found in any case, teams outlive who made them, settings know when they were unset."""

import unicodedata

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

# The key and the name of each table whose names are searched.
NAMED = {
    "user_profiles": ("user_id", "display_name"),
    "teams": ("id", "name"),
    "audit_log": ("id", "entity_name"),
}
# Version 0.2 took a team's first owner for its creator. Who made it is in the audit log, if that
# goes back so far; 0, which is no account, is the command line.
CREATORS = """
UPDATE teams SET created_by = (
    SELECT users.id FROM audit_log LEFT JOIN users ON users.id = audit_log.user_id
    WHERE audit_log.action = 'admin_create_team' AND audit_log.entity_id = teams.id
    ORDER BY audit_log.id DESC LIMIT 1
) WHERE id IN (SELECT entity_id FROM audit_log WHERE action = 'admin_create_team')
"""
CREATOR = "fk_teams_created_by_users"
BATCH = 10_000


def upgrade() -> None:
    for table, (key, name) in NAMED.items():
        op.add_column(table, sa.Column(f"{name}_folded", sa.Text()))
        fold(table, key, name)
    replace_creator(nullable=True, ondelete="SET NULL")
    op.execute(CREATORS)
    let_values_be_absent(nullable=True)


def downgrade() -> None:
    op.execute("DELETE FROM system_config WHERE value IS NULL")
    let_values_be_absent(nullable=False)
    # Version 0.2 had no team without a creator.
    op.execute(
        "UPDATE teams SET created_by = (SELECT min(user_id) FROM team_members"
        " WHERE team_id = teams.id) WHERE created_by IS NULL"
    )
    op.execute("DELETE FROM teams WHERE created_by IS NULL")
    replace_creator(nullable=False, ondelete="RESTRICT")
    for table, (_, name) in NAMED.items():
        op.drop_column(table, f"{name}_folded")


def fold(table: str, key: str, name: str) -> None:
    """Fill the folded column of the rows whose names are not folded already."""
    rows = sa.table(table, sa.column(key), sa.column(name), sa.column(f"{name}_folded"))
    bind, last = op.get_bind(), 0
    page = sa.select(rows.c[key], rows.c[name]).order_by(rows.c[key]).limit(BATCH)
    change = (
        sa.update(rows)
        .where(rows.c[key] == sa.bindparam("row"))
        .values({f"{name}_folded": sa.bindparam("folded")})
    )
    while found := bind.execute(page.where(rows.c[key] > last)).all():
        last = found[-1][0]
        forms = [(row, text, folded(text)) for row, text in found if text is not None]
        if changed := [{"row": row, "folded": form} for row, text, form in forms if form != text]:
            bind.execute(change, changed)


def folded(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold()


def replace_creator(*, nullable: bool, ondelete: str) -> None:
    with op.batch_alter_table("teams", table_kwargs={"sqlite_autoincrement": True}) as table:
        table.drop_constraint(CREATOR, type_="foreignkey")
        table.alter_column("created_by", existing_type=sa.BigInteger(), nullable=nullable)
        table.create_foreign_key(CREATOR, "users", ["created_by"], ["id"], ondelete=ondelete)


def let_values_be_absent(*, nullable: bool) -> None:
    with op.batch_alter_table(
        "system_config", table_kwargs={"sqlite_autoincrement": True}
    ) as table:
        table.alter_column("value", existing_type=sa.Text(), nullable=nullable)
