"""/admin/teams."""

import csv
import io
import json

import pytest

from app.core.access import COMMAND_LINE
from app.team_admin import service as teams
from app.teams.models import Team, TeamMember, TeamRole
from app.user_admin import service as accounts
from tests.support.factories import audit_rows, bearer_of, change_user, configure, count, make_user
from tests.support.races import run_concurrently

TEAMS = "/admin/teams"


@pytest.fixture
def owner(rt):
    return make_user(rt)


@pytest.fixture
def team(rt, owner):
    return teams.create(rt, COMMAND_LINE, "Crew", owner.username)


@pytest.fixture
def path(team):
    return f"{TEAMS}/{team.id}"


def test_a_team_is_made_for_its_owner_by_whoever_asks(boss, admin, rt, owner):
    configure(rt, default_storage_quota=1024)
    made = boss.post(TEAMS, {"name": " Crew ", "admin_user_id": owner.id}).ok(201)
    assert made == {
        "id": made["id"],
        "name": "Crew",
        "description": "",
        "created_by": made["created_by"],
        "owner_id": owner.id,
        "member_count": 1,
        "storage_used": 0,
        "storage_quota": 1024,
        "policy_group_id": 1,
        "created_at": "2026-03-02T09:30:00Z",
        "updated_at": "2026-03-02T09:30:00Z",
        "archived_at": None,
    }
    assert made["created_by"]["username"] == admin.username
    assert boss.get(f"{TEAMS}/{made['id']}").ok() == made
    [row] = audit_rows(rt, "admin_create_team")
    assert (row.user_id, row.entity_id, row.ip_address) == (admin.id, made["id"], "127.0.0.1")
    whole = {
        "name": "Ops",
        "description": "On call",
        "admin_identifier": owner.email.upper(),
        "storage_quota": 5,
        "policy_group_id": 1,
    }
    ops = boss.post(TEAMS, whole).ok(201)
    assert (ops["owner_id"], ops["description"], ops["storage_quota"]) == (owner.id, "On call", 5)


def test_the_owner_is_named_in_exactly_one_way(boss, rt, owner):
    for who in ({}, {"admin_user_id": owner.id, "admin_identifier": owner.username}):
        boss.post(TEAMS, {"name": "Crew", **who}).fails(400, "bad_request")
    boss.post(TEAMS, {"name": "Crew", "admin_user_id": 4711}).fails(404, "not_found")
    boss.post(TEAMS, {"name": "Crew", "admin_identifier": str(owner.id)}).fails(404, "not_found")
    boss.post(TEAMS, {"name": " ", "admin_user_id": owner.id}).fails(400, "bad_request")
    body = {"name": "Crew", "admin_user_id": owner.id, "policy_group_id": 4711}
    boss.post(TEAMS, body).fails(404, "not_found")
    change_user(rt, owner, status="disabled")
    boss.post(TEAMS, {"name": "Crew", "admin_user_id": owner.id}).fails(400, "bad_request")
    assert boss.get(TEAMS).ok()["total"] == 0


@pytest.mark.both_databases
def test_pages_have_every_team_once(boss, rt, owner):
    made = {teams.create(rt, COMMAND_LINE, f"T{n % 2}", owner.username).id for n in range(7)}
    for column in ("id", "name", "storage_quota", "created_at", "archived_at"):
        for order in ("asc", "desc"):
            asked = f"{TEAMS}?limit=3&sort_by={column}&sort_order={order}"
            pages = [boss.get(f"{asked}&offset={offset}").ok() for offset in (0, 3, 6)]
            seen = [item["id"] for page in pages for item in page["items"]]
            assert (set(seen), len(seen)) == (made, 7), asked
            assert {page["total"] for page in pages} == {7}


@pytest.mark.both_databases
def test_teams_are_found_by_name_id_and_whether_they_are_archived(boss, rt, owner, team):
    percent = teams.create(rt, COMMAND_LINE, "100% Ops", owner.username)
    teams.archive(rt, COMMAND_LINE, team.id)

    def found(query):
        page = boss.get(f"{TEAMS}?{query}").ok()
        assert page["total"] == len(page["items"])
        return [item["name"] for item in page["items"]]

    assert found("") == ["100% Ops"]
    assert found("archived=true") == ["Crew"]
    assert found("archived=true&keyword=cRE") == ["Crew"]
    assert found("keyword=%25") == ["100% Ops"]
    assert found(f"keyword={percent.id}") == ["100% Ops"]
    assert found("keyword=_") == []
    boss.get(f"{TEAMS}?archived=perhaps").fails(400, "bad_request")


@pytest.mark.both_databases
def test_a_change_is_all_or_nothing_and_one_entry(boss, admin, rt, path, team):
    wanted = {"name": "Ship", "description": "Sails", "storage_quota": 9}
    boss.patch(path, {**wanted, "policy_group_id": 4711}).fails(404, "not_found")
    assert boss.get(path).ok()["name"] == "Crew"
    changed = boss.patch(path, wanted).ok()
    assert {name: changed[name] for name in wanted} == wanted
    assert boss.patch(path, wanted).ok() == changed
    [row] = audit_rows(rt, "admin_update_team")
    assert (row.user_id, row.entity_id) == (admin.id, team.id)
    assert json.loads(row.details)["previous_name"] == "Crew"
    for name in wanted:
        boss.patch(path, {name: None}).fails(400, "bad_request")
    boss.patch(path, {"name": ""}).fails(400, "bad_request")
    late = {"name": "Late", "expected_updated_at": "2020-01-01T00:00:00Z"}
    boss.patch(path, late).fails(409, "conflict")


def test_an_archived_team_is_restored_while_it_is_kept(boss, admin, rt, path, clock):
    boss.post(f"{path}/restore").fails(409, "conflict")
    boss.delete(path).ok()
    boss.delete(path).ok()
    assert len(audit_rows(rt, "admin_archive_team")) == 1
    boss.patch(path, {"name": "Ship"}).fails(409, "conflict")
    assert boss.post(f"{path}/restore").ok()["archived_at"] is None
    assert len(audit_rows(rt, "admin_restore_team")) == 1
    boss.patch(path, {"name": "Ship"}).ok()
    boss.delete(path).ok()
    clock.advance(days=8)
    boss.login(admin).ok()
    boss.post(f"{path}/restore").fails(409, "conflict")


@pytest.mark.both_databases
def test_members_come_and_go(boss, rt, path, owner, team):
    other = make_user(rt)
    made = boss.post(f"{path}/members", {"user_id": other.id}).ok(201)
    assert made == {
        "id": made["id"],
        "team_id": team.id,
        "user_id": other.id,
        "user": made["user"],
        "email": other.email,
        "role": "member",
        "status": "active",
        "created_at": "2026-03-02T09:30:00Z",
        "updated_at": "2026-03-02T09:30:00Z",
    }
    again = {"identifier": other.username, "role": "admin"}
    boss.post(f"{path}/members", again).fails(400, "team.member_exists")
    changed = boss.patch(f"{path}/members/{other.id}", {"role": "admin"}).ok()
    assert changed["role"] == "admin"
    assert boss.patch(f"{path}/members/{other.id}", {"role": "admin"}).ok() == changed
    page = boss.get(f"{path}/members").ok()
    assert [item["role"] for item in page["items"]] == ["owner", "admin"]
    assert (page["total"], page["limit"]) == (2, 20)
    assert (page["owner_count"], page["manager_count"]) == (1, 2)
    boss.delete(f"{path}/members/{other.id}").ok()
    boss.delete(f"{path}/members/{other.id}").fails(404, "not_found")
    boss.patch(f"{path}/members/4711", {"role": "admin"}).fails(404, "not_found")
    boss.patch(f"{path}/members/{owner.id}", {"role": "boss"}).fails(400, "bad_request")
    rows = [row for row in audit_rows(rt) if row.action.startswith("team_member_")]
    assert [(row.action.removeprefix("team_member_"), json.loads(row.details)) for row in rows] == [
        ("add", {"member_user_id": other.id, "role": "member"}),
        ("update", {"member_user_id": other.id, "previous_role": "member", "next_role": "admin"}),
        ("remove", {"member_user_id": other.id, "removed_role": "admin"}),
    ]


@pytest.mark.both_databases
def test_a_change_of_a_member_meant_for_another_state_is_refused(boss, rt, path, clock):
    other = make_user(rt)
    here = f"{path}/members/{other.id}"
    seen = boss.post(f"{path}/members", {"user_id": other.id}).ok(201)["updated_at"]
    clock.advance(seconds=1)
    changed = boss.patch(here, {"role": "admin", "expected_updated_at": seen}).ok()
    for role in ("member", "admin"):
        late = {"role": role, "expected_updated_at": seen}
        boss.patch(here, late).fails(409, "conflict")
    boss.patch(here, {"role": "member", "expected_updated_at": "now"}).fails(400, "bad_request")
    boss.patch(here, {"role": "owner", "expected_updated_at": changed["updated_at"]}).ok()


def test_the_last_owner_stays_one(boss, rt, path, owner):
    """Whoever owns another team."""
    teams.create(rt, COMMAND_LINE, "Others", make_user(rt).username)
    boss.patch(f"{path}/members/{owner.id}", {"role": "member"}).fails(409, "conflict")
    boss.delete(f"{path}/members/{owner.id}").fails(409, "conflict")
    assert boss.get(path).ok()["owner_id"] == owner.id


@pytest.mark.both_databases
def test_of_owners_who_are_removed_at_once_one_stays(boss, app, rt, admin, path, owner, team):
    owners = [owner, *(make_user(rt) for _ in range(3))]
    for one in owners[1:]:
        teams.add_member(rt, COMMAND_LINE, team.id, one.id, TeamRole.OWNER)
    clients = [bearer_of(rt, app, admin) for _ in owners]
    answers = run_concurrently(
        [
            lambda client=client, one=one: client.delete(f"{path}/members/{one.id}")
            for client, one in zip(clients, owners, strict=True)
        ]
    )
    assert sorted(answer.status for answer in answers) == [200, 200, 200, 409]
    assert count(rt, TeamMember, TeamMember.role == TeamRole.OWNER) == 1


@pytest.mark.both_databases
def test_an_account_added_twice_at_once_is_a_member_once(app, rt, admin, path):
    other = make_user(rt)
    clients = [bearer_of(rt, app, admin) for _ in range(4)]
    answers = run_concurrently(
        [lambda c=c: c.post(f"{path}/members", {"user_id": other.id}) for c in clients]
    )
    assert sorted(answer.status for answer in answers) == [201, 400, 400, 400]


@pytest.mark.both_databases
def test_a_team_is_archived_and_restored_once_however_many_ask(app, rt, admin, path):
    clients = [bearer_of(rt, app, admin) for _ in range(3)]
    gone = run_concurrently([lambda c=c: c.delete(path) for c in clients])
    assert [answer.status for answer in gone] == [200, 200, 200]
    assert len(audit_rows(rt, "admin_archive_team")) == 1
    back = run_concurrently([lambda c=c: c.post(f"{path}/restore") for c in clients])
    assert sorted(answer.status for answer in back) == [200, 409, 409]


@pytest.mark.both_databases
def test_pages_of_members_have_each_once(boss, rt, path, team):
    for number in range(6):
        role = TeamRole.ADMIN if number % 2 else TeamRole.MEMBER
        teams.add_member(rt, COMMAND_LINE, team.id, make_user(rt).id, role)
    for column in ("username", "email", "role", "status", "created_at", "updated_at"):
        for order in ("asc", "desc"):
            asked = f"{path}/members?limit=3&sort_by={column}&sort_order={order}"
            pages = [boss.get(f"{asked}&offset={offset}").ok() for offset in (0, 3, 6)]
            seen = [item["user_id"] for page in pages for item in page["items"]]
            assert len(seen) == len(set(seen)) == pages[0]["total"] == 7, asked


@pytest.mark.both_databases
def test_members_are_filtered(boss, rt, path, team):
    ada = make_user(rt, username="ada_1", email="ada@example.net")
    off = make_user(rt)
    for one in (ada, off):
        teams.add_member(rt, COMMAND_LINE, team.id, one.id, TeamRole.MEMBER)
    change_user(rt, off, status="disabled")

    def found(query):
        page = boss.get(f"{path}/members?{query}").ok()
        assert page["total"] == len(page["items"])
        return [item["user_id"] for item in page["items"]]

    assert found("keyword=ADA_") == [ada.id]
    assert found("keyword=example.net") == [ada.id]
    assert off.id in found(f"keyword={off.id}")
    assert found("status=disabled") == [off.id]
    assert len(found("role=member&status=")) == 2
    boss.get(f"{path}/members?role=boss").fails(400, "bad_request")


@pytest.mark.both_databases
def test_a_team_has_its_own_audit_log(boss, admin, rt, path, owner):
    other = make_user(rt)
    boss.post(f"{path}/members", {"user_id": other.id}).ok(201)
    boss.patch(f"{path}/members/{other.id}", {"role": "admin"}).ok()
    boss.patch(path, {"name": "Ship"}).ok()
    teams.create(rt, COMMAND_LINE, "Others", owner.username)
    page = boss.get(f"{path}/audit-logs?sort_order=asc").ok()
    assert page["total"] == 4
    made, added, changed, renamed = page["items"]
    assert (made["action"], made["actor"]) == ("admin_create_team", None)
    assert added["actor"]["username"] == admin.username
    assert (added["member"]["id"], added["role"]) == (other.id, "member")
    assert (changed["previous_role"], changed["next_role"]) == ("member", "admin")
    assert (renamed["member"], renamed["role"], renamed["presentation"]) == (None, None, None)
    boss.delete(f"{path}/members/{other.id}").ok()
    removed = boss.get(f"{path}/audit-logs?limit=1").ok()["items"][0]
    assert removed["member"]["id"] == other.id
    told = [entry["presentation"]["summary"]["code"] for entry in (added, changed, removed)]
    assert told == ["team_member_add", "team_member_update", "team_member_remove"]
    assert boss.get(f"{path}/audit-logs?action=admin_create_team").ok()["total"] == 1
    answer = boss.get(f"{path}/audit-logs/export?sort_order=asc")
    rows = list(csv.DictReader(io.StringIO(answer.body.decode("utf-8-sig"), newline="")))
    assert [row["member_username"] for row in rows] == [
        "",
        *[other.username] * 2,
        "",
        other.username,
    ]


def test_what_is_not_there_is_not_found(boss):
    for method, rest in (
        ("GET", ""),
        ("PATCH", ""),
        ("DELETE", ""),
        ("POST", "/restore"),
        ("GET", "/members"),
        ("DELETE", "/members/1"),
        ("GET", "/audit-logs"),
        ("GET", "/audit-logs/export"),
    ):
        for number in ("4711", "0", "x"):
            answer = boss.call(method, f"/api/v1{TEAMS}/{number}{rest}", {})
            answer.fails(404, "not_found")


def test_an_id_is_never_a_name(boss, rt, owner):
    teams.create(rt, COMMAND_LINE, "4711", owner.username)
    boss.get(f"{TEAMS}/4711").fails(404, "not_found")
    boss.delete(f"{TEAMS}/4711").fails(404, "not_found")


@pytest.mark.both_databases
def test_who_made_a_team_may_leave_it_and_delete_the_account(boss, browser, admin, rt, user):
    other = make_user(rt)
    change_user(rt, user, role="admin")
    browser.login(user).ok()
    made = browser.post(TEAMS, {"name": "Crew", "admin_user_id": user.id}).ok(201)
    path = f"{TEAMS}/{made['id']}"
    boss.post(f"{path}/members", {"user_id": other.id, "role": "owner"}).ok(201)
    boss.delete(f"{path}/members/{user.id}").ok()
    change_user(rt, user, role="user")
    browser.delete("/auth/account", {"confirm": user.username}).ok()
    assert boss.get(path).ok()["created_by"] is None
    assert boss.get(TEAMS).ok()["items"][0]["created_by"] is None
    browser.login(other).ok()
    assert [(team["id"], team["created_by"]) for team in browser.get("/teams").ok()] == [
        (made["id"], None)
    ]


@pytest.mark.both_databases
def test_the_last_owner_of_a_team_in_use_stays_whoever_made_it(browser, rt, user, line):
    line.json("teams", "create", "Crew", "--owner", user.username)
    browser.login(user).ok()
    browser.delete("/auth/account", {"confirm": user.username}).fails(409, "conflict")
    line.json("teams", "archive", "--yes", "Crew")
    browser.delete("/auth/account", {"confirm": user.username}).ok()


@pytest.mark.both_databases
def test_administrators_make_teams_for_each_other_at_once(app, rt):
    pair = [make_user(rt, role="admin") for _ in range(2)]
    clients = [bearer_of(rt, app, one) for one in pair]
    bodies = [{"name": "Crew", "admin_user_id": one.id} for one in reversed(pair)]
    answers = run_concurrently(
        [
            lambda client=client, body=body: client.post(TEAMS, body)
            for client, body in zip(clients * 4, bodies * 4, strict=True)
        ]
    )
    assert [answer.status for answer in answers] == [201] * 8


@pytest.mark.both_databases
def test_accounts_that_own_each_others_teams_are_deleted_at_once(rt, admin):
    pair = [make_user(rt) for _ in range(2)]
    for maker, owner in (pair, reversed(pair)):
        made = teams.create(rt, COMMAND_LINE, "Crew", owner.username)
        teams.add_member(rt, COMMAND_LINE, made.id, admin.id, TeamRole.OWNER)
        with rt.transaction() as session:
            session.get(Team, made.id).created_by = maker.id
    run_concurrently(
        [lambda one=one: accounts.delete(rt, COMMAND_LINE, one.username) for one in pair]
    )
    assert count(rt, Team, Team.created_by.is_(None)) == 2
