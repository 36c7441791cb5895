"""GET /teams."""

import pytest

from app.core.access import COMMAND_LINE, Operator, Principal
from app.team_admin import service as teams
from app.teams.models import TeamRole
from app.teams.schemas import OwnTeamsSchema
from app.users import queries as users_queries
from app.users.models import AvatarSource, UserProfile
from tests.support.factories import make_user


@pytest.fixture
def team(rt, user):
    return teams.create(rt, COMMAND_LINE, "Crew", user.username)


def names(client, query=""):
    return [team["name"] for team in client.get(f"/teams{query}").ok()]


def test_a_member_sees_the_team(rt, signed_in, user, team):
    owner = make_user(rt, username="olga")
    with rt.reading() as session:
        account = users_queries.find_account(session, owner.id)
    by = Operator(Principal(account, "", 0, False, rt.clock.now()))
    theirs = teams.create(rt, by, "Others", owner.username)
    teams.add_member(rt, COMMAND_LINE, str(theirs.id), user.username, TeamRole.ADMIN)
    with rt.transaction() as session:
        now = rt.clock.now()
        row = {"avatar_source": AvatarSource.UPLOADED, "avatar_key": "a", "avatar_version": 3}
        session.add(UserProfile(user_id=owner.id, created_at=now, updated_at=now, **row))
    _, seen = signed_in.get("/teams").ok()
    assert seen == {
        "id": theirs.id,
        "name": "Others",
        "description": "",
        "created_by": {
            "id": owner.id,
            "username": "olga",
            "profile": {
                "display_name": None,
                "avatar": {
                    "source": "uploaded",
                    "url_512": f"/admin/users/{owner.id}/avatar/512?v=3",
                    "url_1024": f"/admin/users/{owner.id}/avatar/1024?v=3",
                    "version": 3,
                },
            },
        },
        "my_role": "admin",
        "member_count": 2,
        "storage_used": 0,
        "storage_quota": theirs.storage_quota,
        "policy_group_id": theirs.policy_group_id,
        "created_at": "2026-03-02T09:30:00Z",
        "updated_at": "2026-03-02T09:30:00Z",
        "archived_at": None,
    }


def test_nobody_sees_teams_of_others(rt, signed_in):
    teams.create(rt, COMMAND_LINE, "Others", make_user(rt).username)
    assert names(signed_in) == []


@pytest.mark.both_databases
def test_archived_teams_are_listed_apart(rt, signed_in, user, team):
    teams.create(rt, COMMAND_LINE, "Old", user.username)
    teams.archive(rt, COMMAND_LINE, "Old")
    assert names(signed_in) == names(signed_in, "?archived=false") == ["Crew"]
    [old] = signed_in.get("/teams?archived=true").ok()
    assert (old["name"], old["archived_at"]) == ("Old", "2026-03-02T09:30:00Z")


@pytest.mark.both_databases
def test_a_keyword_is_a_part_of_the_name_in_any_case(rt, signed_in, user, team):
    teams.create(rt, COMMAND_LINE, "100% Ops_Team", user.username)
    assert names(signed_in, "?keyword=REW") == ["Crew"]
    assert names(signed_in, "?keyword=0%25+op") == ["100% Ops_Team"]
    assert names(signed_in, "?keyword=_") == ["100% Ops_Team"]
    assert names(signed_in, "?keyword=+") == ["Crew", "100% Ops_Team"]


def test_a_part_of_the_list_has_bounds_that_numbers_are_moved_to(rt, signed_in, user, team):
    for number in range(4):
        teams.create(rt, COMMAND_LINE, f"T{number}", user.username)
    everything = ["Crew", *(f"T{number}" for number in range(4))]
    assert names(signed_in) == names(signed_in, "?limit=1000") == everything
    assert names(signed_in, "?limit=2&offset=1") == everything[1:3]
    assert names(signed_in, "?limit=0&offset=-5") == everything[:1]
    assert names(signed_in, f"?offset={10**30}") == []


def test_at_most_a_hundred_are_shown_at_once():
    for given in ({}, {"limit": 1000}):
        read = OwnTeamsSchema().load(given)
        assert (read["limit"], read["offset"]) == (100, 0)


def test_what_is_no_number_and_no_truth_is_refused(signed_in):
    for query in ("limit=many", "limit=", "limit=1.5", "offset=x", "archived=perhaps"):
        answer = signed_in.get(f"/teams?{query}")
        assert (answer.status, answer.code) == (400, "bad_request"), query
