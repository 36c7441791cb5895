"""Names of the version before are found in any case, and its teams know who made them."""

from urllib.parse import quote

import pytest
from flask_migrate import downgrade, upgrade

from app.core.config import MIGRATIONS
from app.teams.models import Team
from tests.support.factories import make_user

pytestmark = pytest.mark.both_databases


@pytest.fixture
def made(boss, line, rt):
    """The id of a team that an administrator made, and that of one of the command line."""
    owner = make_user(rt)
    body = {"name": "Ärzte", "admin_user_id": owner.id}
    ids = [
        boss.post("/admin/teams", body).ok(201)["id"],
        line.json("teams", "create", "Crew", "--owner", owner.username)["id"],
    ]
    with rt.transaction() as session:
        for team_id in ids:  # as that version had it
            session.get(Team, team_id).created_by = owner.id
    return ids


def test_names_are_found_and_creators_known(app, boss, admin, made):
    with app.app_context():
        downgrade(str(MIGRATIONS), "0018")
        upgrade(str(MIGRATIONS))
    for path in ("/admin/teams", "/admin/audit-logs"):
        assert boss.get(f"{path}?keyword={quote('äRZTE')}").ok()["total"] == 1
    creators = [boss.get(f"/admin/teams/{team_id}").ok()["created_by"] for team_id in made]
    assert creators[0]["id"] == admin.id
    assert creators[1] is None


def test_settings_and_teams_go_back_to_the_version_before(app, boss, made, rt):
    boss.patch("/admin/config", {"values": {"branding_title": "Files"}}).ok()
    boss.patch("/admin/config", {"unset": ["branding_title"]}).ok()
    with rt.transaction() as session:
        session.get(Team, made[1]).created_by = None
    with app.app_context():
        downgrade(str(MIGRATIONS), "0018")
        upgrade(str(MIGRATIONS))
    assert boss.get("/admin/config/branding_title").ok()["is_set"] is False
    assert boss.get("/admin/teams").ok()["total"] == 2
