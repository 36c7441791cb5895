"""`flask teams`."""

import json

import pytest

from app.core.access import COMMAND_LINE
from app.team_admin import service as teams
from app.teams import queries
from app.teams.errors import LastTeamOwner, TeamOwnerUndeletable
from app.teams.models import TeamMember, TeamRole
from app.teams.service import delete_archived
from app.user_admin import service as accounts
from tests.support.factories import audit_rows, configure, count, make_user
from tests.support.races import run_concurrently


@pytest.fixture
def team(line, user):
    return line.json("teams", "create", "Crew", "--owner", user.username)


def test_a_team_is_created_with_its_owner(line, rt, user):
    configure(rt, default_storage_quota=1024)
    made = line.json("teams", "create", "  Crew ", "--owner", user.email)
    assert made == {
        "id": made["id"],
        "name": "Crew",
        "description": "",
        "created_by": None,
        "owner_id": user.id,
        "member_count": 1,
        "storage_used": 0,
        "storage_quota": 1024,
        "policy_group_id": 1,
        "created_at": "2026-03-02T09:30:00Z",
        "updated_at": "2026-03-02T09:30:00Z",
        "archived_at": None,
    }
    assert line.json("teams", "list") == [made]
    [entry] = audit_rows(rt, "admin_create_team")
    assert (entry.entity_type, entry.entity_id, entry.entity_name) == ("team", made["id"], "Crew")


@pytest.mark.usefixtures("without_storage_route")
def test_a_team_may_be_without_policy_group(line, user):
    made = line.json("teams", "create", "Crew", "--owner", user.username)
    assert made["policy_group_id"] is None


def test_names_have_bounds(line, user):
    for name in ("", "  ", "x" * 129):
        line.refuses("bad_request", "teams", "create", name, "--owner", user.username)


def test_members_are_listed_owners_first(line, rt, user, team):
    first, second = make_user(rt), make_user(rt)
    line.json("teams", "add-member", "Crew", first.username)
    line.json("teams", "add-member", "Crew", second.username, "--role", "admin")
    line.json("teams", "create", "Other", "--owner", first.username)
    listed = line.json("teams", "members", "Crew")
    assert listed[1] == {
        "user_id": second.id,
        "username": second.username,
        "email": second.email,
        "role": "admin",
        "created_at": "2026-03-02T09:30:00Z",
    }
    assert [(m["user_id"], m["role"]) for m in listed] == [
        (user.id, "owner"),
        (second.id, "admin"),
        (first.id, "member"),
    ]
    line.json("teams", "archive", "--yes", "Crew")
    assert line.json("teams", "members", str(team["id"])) == listed
    line.refuses("not_found", "teams", "members", "nonsense")


def test_a_role_is_changed_and_the_last_owner_stays_one(line, rt, user, team):
    other = make_user(rt)
    line.refuses("team.not_member", "teams", "set-role", "Crew", other.username, "admin")
    line.json("teams", "add-member", "Crew", other.username)
    line.refuses("bad_request", "teams", "set-role", "Crew", user.username, "member")
    assert line.json("teams", "set-role", "Crew", other.email, "owner")["member_count"] == 2
    changed = line.json("teams", "set-role", str(team["id"]), user.username, "member")
    assert changed["owner_id"] == other.id
    line.refuses("bad_request", "teams", "set-role", "Crew", other.username, "admin")
    line.json("teams", "set-role", "Crew", other.username, "owner")
    assert line("teams", "set-role", "Crew", other.username, "boss").exit_code == 2
    told = [json.loads(entry.details) for entry in audit_rows(rt, "team_member_update")]
    assert told[:2] == [
        {"member_user_id": other.id, "previous_role": "member", "next_role": "owner"},
        {"member_user_id": user.id, "previous_role": "owner", "next_role": "member"},
    ]
    line.json("teams", "archive", "--yes", "Crew")
    line.refuses("conflict", "teams", "set-role", "Crew", other.username, "owner")


@pytest.mark.both_databases
def test_of_two_owners_who_step_down_at_once_one_stays(line, rt, user, team):
    other = make_user(rt)
    line.json("teams", "add-member", "Crew", other.username, "--role", "owner")

    def step_down(who):
        try:
            return teams.set_role(rt, COMMAND_LINE, "Crew", who.username, TeamRole.MEMBER)
        except LastTeamOwner as error:
            return error

    found = run_concurrently([lambda: step_down(user), lambda: step_down(other)])
    assert sum(isinstance(one, LastTeamOwner) for one in found) == 1


def test_one_member_is_no_members(line, rt, user, team):
    other = make_user(rt)
    assert line("teams", "add-member", "Crew", other.username).text.endswith("has 2 members")
    assert line("teams", "remove-member", "Crew", other.username).text.endswith("has 1 member")


def test_a_disabled_account_joins_no_team(line, rt, team):
    other = make_user(rt, status="disabled")
    line.refuses("bad_request", "teams", "add-member", "Crew", other.username)


def test_a_team_is_named_by_id_or_name_and_what_means_several_is_refused(line, user, team):
    digits = line.json("teams", "create", str(team["id"]), "--owner", user.username)
    told = line.refuses("conflict", "teams", "archive", "--yes", str(team["id"]))
    assert (
        told
        == f"{team['id']} means several teams; say which: id:{team['id']} or id:{digits['id']}."
    )
    line.json("teams", "archive", "--yes", f"id:{team['id']}")
    shown = line.json("teams", "list", "--archived")
    assert [(t["id"], t["archived_at"] is None) for t in shown] == [
        (team["id"], False),
        (digits["id"], True),
    ]
    create = ("teams", "create", "Twin", "--owner", user.username)
    first, second = line.json(*create)["id"], line.json(*create)["id"]
    told = line.refuses("conflict", "teams", "archive", "--yes", "Twin")
    assert told == f"Twin means several teams; say which: id:{first} or id:{second}."
    told = line.refuses("not_found", "teams", "archive", "--yes", "nonsense")
    assert told == "There is no team nonsense."


def test_a_group_is_assigned(line, team):
    line.json("storage", "create-group", "Fast", "--policy", "Local storage")
    assert line.json("teams", "assign-group", "Crew", "Fast")["policy_group_id"] == 2
    assert line.json("teams", "assign-group", "Crew", "Fast")["policy_group_id"] == 2
    line.refuses("not_found", "teams", "assign-group", "Crew", "nonsense")
    line.json("teams", "assign-group", "Crew", "1")
    line.json("storage", "disable-group", "Fast")
    line.refuses("bad_request", "teams", "assign-group", "Crew", "Fast")


def test_an_archived_team_is_hidden_and_no_longer_changed(line, rt, user, team):
    shown = line.json("teams", "archive", "--yes", "Crew")
    assert shown["archived_at"] == "2026-03-02T09:30:00Z"
    assert line.json("teams", "archive", "--yes", "Crew") == shown
    assert len(audit_rows(rt, "admin_archive_team")) == 1
    assert line.json("teams", "list") == []
    other = make_user(rt)
    line.refuses("conflict", "teams", "add-member", "Crew", other.username)
    line.refuses("conflict", "teams", "remove-member", "Crew", user.username)
    line.refuses("conflict", "teams", "assign-group", "Crew", "1")


def test_a_team_is_changed_and_restored(line, team):
    options = ("--name", "Ship", "--description", "Sails", "--quota", "5kB")
    shown = line.json("teams", "update", "Crew", *options)
    given = {"name": "Ship", "description": "Sails", "storage_quota": 5000}
    assert shown == team | given
    assert line.json("teams", "update", "Ship", "--description", "")["description"] == ""
    line.refuses("conflict", "teams", "restore", "Ship")
    line.json("teams", "archive", "--yes", "Ship")
    line.refuses("conflict", "teams", "update", "Ship", "--name", "Boat")
    assert line.json("teams", "restore", "Ship")["archived_at"] is None


@pytest.mark.both_databases
def test_archived_teams_are_deleted_when_their_time_is_over(line, rt, clock, team):
    line.json("teams", "archive", "--yes", "Crew")
    clock.advance(days=7)
    assert delete_archived(rt) == 0
    clock.advance(seconds=1)
    assert line.json("cleanup")["teams"] == 1
    assert line.json("teams", "list", "--archived") == []
    assert count(rt, TeamMember) == 0


def test_teams_in_use_are_never_deleted(line, rt, clock, team):
    configure(rt, team_archive_retention_days=0)
    clock.advance(days=365)
    assert delete_archived(rt) == 0


def test_a_member_who_is_deleted_is_gone_from_the_team(line, rt, team):
    other = make_user(rt)
    line.json("teams", "add-member", "Crew", other.username)
    line.json("users", "delete", "--yes", other.username)
    assert line.json("teams", "list")[0]["member_count"] == 1


def test_the_last_owner_of_a_team_is_not_deleted(line, rt, user, team):
    other, third = make_user(rt), make_user(rt)
    for owner in (other, third):
        line.json("teams", "add-member", "Crew", owner.username, "--role", "owner")
    line.json("teams", "remove-member", "Crew", user.username)
    line.json("users", "delete", "--yes", third.username)
    assert "last owner" in line.refuses("conflict", "users", "delete", "--yes", other.username)
    line.json("teams", "archive", "--yes", "Crew")
    line.json("users", "delete", "--yes", other.username)
    assert line.json("teams", "list", "--archived")[0]["owner_id"] is None


@pytest.mark.both_databases
def test_an_owner_who_goes_and_one_who_is_deleted_at_once_leave_one(line, rt, user, team):
    other = make_user(rt)
    line.json("teams", "add-member", "Crew", other.username, "--role", "owner")

    def attempt(action):
        try:
            return action()
        except (LastTeamOwner, TeamOwnerUndeletable) as error:
            return error

    found = run_concurrently(
        [
            lambda: attempt(lambda: teams.remove_member(rt, COMMAND_LINE, "Crew", user.username)),
            lambda: attempt(lambda: accounts.delete(rt, COMMAND_LINE, other.username)),
        ]
    )
    assert sum(isinstance(one, Exception) for one in found) == 1
    with rt.reading() as session:
        [crew] = queries.list_teams(session, archived=False)
    assert crew.owner_id in {user.id, other.id}


def test_human_text(line, user, team):
    assert line("teams", "list").text.splitlines()[1].split() == [
        str(team["id"]),
        "Crew",
        user.username,
        "1",
        "-",
    ]
    assert line("teams", "members", "Crew").text.splitlines()[1].split() == [
        str(user.id),
        user.username,
        user.email,
        "owner",
        "2026-03-02T09:30:00Z",
    ]
    shown = line("teams", "set-role", "Crew", user.username, "owner").text
    assert shown == f"Crew (id {team['id']}) has {user.username} as owner"
    assert line("teams", "archive", "--yes", "Crew").text == f"Crew (id {team['id']}) is archived"
