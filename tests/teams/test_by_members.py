"""/teams/{id}: teams by their members."""

import csv
import io
import json

import pytest
import sqlalchemy as sa

from app.audit.models import AuditEntry
from app.core.access import COMMAND_LINE, Principal
from app.core.client import Client
from app.own_data import erasure
from app.own_teams import service as own_teams
from app.store.redis import EVENTS_CHANNEL
from app.team_admin import service as teams
from app.teams import service
from app.teams.errors import TeamManagerRequired
from app.teams.models import TeamMember, TeamRole
from app.users import service as users
from tests.support.factories import audit_rows, bearer_of, change_user, configure, count, make_user
from tests.support.mailbox import text_of
from tests.support.races import run_concurrently

ROLES = ("owner", "admin", "member", "stranger")


class Crew:
    """A team with one member of each role, and the clients of these and of a stranger."""

    def __init__(self, rt, app, people, name="Crew"):
        self.people, self.clients = (
            people,
            {role: bearer_of(rt, app, people[role]) for role in ROLES},
        )
        self.id = teams.create(rt, COMMAND_LINE, name, people["owner"].username).id
        for role in (TeamRole.ADMIN, TeamRole.MEMBER):
            teams.add_member(rt, COMMAND_LINE, self.id, people[role].id, role)
        self.path = f"/teams/{self.id}"

    def member(self, role):
        """Return the path of a member."""
        return f"{self.path}/members/{self.people[role].id}"


@pytest.fixture
def people(rt):
    return {role: make_user(rt, username=f"the_{role}") for role in ROLES}


@pytest.fixture
def crew(rt, app, people):
    return Crew(rt, app, people)


def test_whoever_makes_a_team_owns_it(rt, signed_in, user):
    configure(rt, default_storage_quota=1024)
    made = signed_in.post("/teams", {"name": " Crew ", "description": None}).ok(201)
    assert (made["name"], made["description"], made["my_role"]) == ("Crew", "", "owner")
    assert (made["storage_quota"], made["policy_group_id"], made["member_count"]) == (1024, 1, 1)
    assert made["created_by"]["id"] == user.id
    assert signed_in.get(f"/teams/{made['id']}").ok() == made == signed_in.get("/teams").ok()[0]
    [row] = audit_rows(rt, "team_create")
    assert (row.user_id, row.entity_id, row.ip_address) == (user.id, made["id"], "127.0.0.1")
    for body in ({}, {"name": " "}, {"name": "x" * 129}, {"name": 7}):
        signed_in.post("/teams", body).fails(400, "bad_request")


def test_only_administrators_make_teams_while_others_may_not(app, rt, signed_in, admin):
    configure(rt, teams_self_service=False)
    signed_in.post("/teams", {"name": "Crew"}).fails(403, "forbidden")
    made = bearer_of(rt, app, admin).post("/teams", {"name": "Crew"}).ok(201)
    assert made["my_role"] == "owner"


def test_nobody_makes_teams_without_end(signed_in):
    made = [signed_in.post("/teams", {"name": f"T{n}"}).status for n in range(21)]
    assert made == [201] * 20 + [429]


NEW = {"identifier": "new_one"}
FORBIDDEN = {
    "owner": "team.owner_required",
    "manager": "team.admin_or_owner_required",
    "member": "team.not_member",
}
# What is asked, and what each of ROLES is answered: a status, or what it lacks.
MATRIX = {
    "show": ("GET {team}", None, (200, 200, 200, "member")),
    "rename": ("PATCH {team}", {"name": "Ship"}, (200, 200, "manager", "member")),
    "archive": ("DELETE {team}", None, (200, "owner", "owner", "member")),
    "restore": ("POST {team}/restore", None, (409, 409, "manager", "member")),
    "members": ("GET {team}/members", None, (200, 200, 200, "member")),
    "add": ("POST {team}/members", NEW, (201, 201, "manager", "member")),
    "add owner": (
        "POST {team}/members",
        {**NEW, "role": "owner"},
        (201, "owner", "owner", "member"),
    ),
    "promote": ("PATCH {member}", {"role": "admin"}, (200, 200, "manager", "member")),
    "make owner": ("PATCH {member}", {"role": "owner"}, (200, "owner", "owner", "member")),
    "demote owner": ("PATCH {owner}", {"role": "member"}, (409, "owner", "manager", "member")),
    "remove": ("DELETE {member}", None, (200, 200, 200, "member")),
    "remove admin": ("DELETE {admin}", None, (200, 200, "manager", "member")),
    "remove owner": ("DELETE {owner}", None, (409, "owner", "manager", "member")),
    "log": ("GET {team}/audit-logs", None, (200, 200, "manager", "member")),
    "export": ("GET {team}/audit-logs/export", None, (200, 200, "manager", "member")),
}


@pytest.mark.parametrize("asked", MATRIX)
def test_what_each_member_may_do(rt, app, people, asked):
    make_user(rt, username="new_one")
    route, body, answered = MATRIX[asked]
    for role, expected in zip(ROLES, answered, strict=True):
        crew = Crew(rt, app, people, f"Crew of {role}")
        before = len(audit_rows(rt))
        places = {one: crew.member(one) for one in ROLES[:3]}
        method, path = route.format(team=crew.path, **places).split()
        answer = crew.clients[role].call(method, f"/api/v1{path}", body)
        if isinstance(expected, str):
            answer.fails(403, FORBIDDEN[expected])
            assert len(audit_rows(rt)) == before
        else:
            assert answer.status == expected, (role, answer)


def test_a_team_that_is_not_there_is_not_found(signed_in):
    for number in ("4711", "0", "x"):
        signed_in.get(f"/teams/{number}").fails(404, "not_found")
        signed_in.get(f"/teams/{number}/members").fails(404, "not_found")
        signed_in.delete(f"/teams/{number}").fails(404, "not_found")


def test_a_change_is_meant_for_one_state_and_null_leaves_what_is(rt, crew, clock):
    owner = crew.clients["owner"]
    seen = owner.get(crew.path).ok()["updated_at"]
    clock.advance(seconds=1)
    changed = owner.patch(crew.path, {"name": " Ship ", "description": None}).ok()
    assert (changed["name"], changed["description"], changed["my_role"]) == ("Ship", "", "owner")
    for late in (
        (crew.path, {"name": "Late", "expected_updated_at": seen}),
        (crew.member("member"), {"role": "admin", "expected_updated_at": "2020-01-01T00:00:00Z"}),
    ):
        owner.patch(*late).fails(409, "conflict")
    owner.patch(crew.path, {"name": ""}).fails(400, "bad_request")
    owner.patch(crew.path, {"storage_quota": 5}).ok()
    assert owner.get(crew.path).ok()["storage_quota"] == 0
    [row] = audit_rows(rt, "team_update")
    assert json.loads(row.details) == {"name": "Ship", "previous_name": "Crew"}


@pytest.mark.both_databases
def test_an_archived_team_is_seen_and_restored_and_not_changed(crew, clock):
    owner, admin = crew.clients["owner"], crew.clients["admin"]
    owner.delete(crew.path).ok()
    owner.delete(crew.path).ok()
    assert admin.get(crew.path).ok()["archived_at"] == "2026-03-02T09:30:00Z"
    assert admin.get(f"{crew.path}/members").ok()["total"] == 3
    for change in (
        owner.patch(crew.path, {"name": "Ship"}),
        owner.post(f"{crew.path}/members", {"identifier": "the_stranger"}),
        owner.patch(crew.member("member"), {"role": "admin"}),
        owner.delete(crew.member("admin")),
    ):
        change.fails(409, "conflict")
    crew.clients["member"].delete(crew.member("member")).ok()  # nobody is kept in it
    assert admin.post(f"{crew.path}/restore").ok()["archived_at"] is None


@pytest.mark.both_databases
def test_members_are_listed_with_the_counts_of_the_whole_team(crew):
    page = crew.clients["member"].get(f"{crew.path}/members?role=admin").ok()
    assert [item["user"]["username"] for item in page["items"]] == ["the_admin"]
    assert (page["total"], page["owner_count"], page["manager_count"]) == (1, 1, 2)


def test_accounts_are_named_in_one_way_and_added_once(rt, crew, people):
    owner, path = crew.clients["owner"], f"{crew.path}/members"
    both = {"identifier": "the_stranger", "user_id": people["stranger"].id}
    for body in ({}, both):
        owner.post(path, body).fails(400, "bad_request")
    owner.post(path, {"identifier": "nobody"}).fails(404, "not_found")
    added = owner.post(path, {"user_id": people["stranger"].id}).ok(201)
    assert (added["role"], added["email"]) == ("member", people["stranger"].email)
    owner.post(path, {"identifier": "THE_STRANGER"}).fails(400, "team.member_exists")
    change_user(rt, make_user(rt, username="pending"), activated_at=None)
    owner.post(path, {"identifier": "pending"}).fails(404, "not_found")
    change_user(rt, make_user(rt, username="gone"), status="disabled")
    owner.post(path, {"identifier": "gone"}).fails(400, "bad_request")
    owner.patch(f"{path}/4711", {"role": "admin"}).fails(404, "not_found")
    owner.delete(f"{path}/4711").fails(404, "not_found")


def test_nobody_tries_names_without_end(crew):
    path = f"{crew.path}/members"
    tried = {crew.clients["owner"].post(path, {"identifier": f"n{n}"}).status for n in range(60)}
    assert tried == {404}
    answer = crew.clients["owner"].post(path, {"identifier": "the_stranger"})
    answer.fails(429, "rate_limited")
    crew.clients["owner"].patch(crew.member("member"), {"role": "admin"}).fails(429, "rate_limited")
    # Others of the team are not held up.
    crew.clients["admin"].post(path, {"identifier": "the_stranger"}).ok(201)


@pytest.mark.both_databases
def test_the_log_says_what_happened_to_members_and_not_where_from(crew, people):
    owner, stranger = crew.clients["owner"], people["stranger"]
    owner.post(f"{crew.path}/members", {"user_id": stranger.id}).ok(201)
    owner.patch(crew.member("stranger"), {"role": "admin"}).ok()
    owner.delete(crew.member("stranger")).ok()
    entries = owner.get(f"{crew.path}/audit-logs?limit=3&sort_order=asc&offset=3").ok()["items"]
    told = [
        (e["action"], e["role"], e["previous_role"], e["next_role"], e["presentation"])
        for e in entries
    ]
    assert told == [
        (f"team_member_{what}", *roles, {"summary": {"code": f"team_member_{what}"}})
        for what, roles in (
            ("add", ("member", None, None)),
            ("update", (None, "member", "admin")),
            ("remove", ("admin", None, None)),
        )
    ]
    assert {(e["member"]["id"], e["actor"]["username"]) for e in entries} == {
        (stranger.id, "the_owner")
    }
    found = owner.get(f"{crew.path}/audit-logs?action=team_member_remove").ok()
    assert found["total"] == 1
    answer = owner.get(f"{crew.path}/audit-logs/export?sort_order=asc")
    rows = list(csv.DictReader(io.StringIO(answer.body.decode("utf-8-sig"), newline="")))
    assert [row["action"] for row in rows[3:]] == [e["action"] for e in entries]
    assert {(row["ip_address"], row["user_agent"]) for row in rows} == {("", "")}
    for rest in ("", "/export"):  # nor does the order tell
        asked = f"{crew.path}/audit-logs{rest}?sort_by=ip_address"
        owner.get(asked).fails(400, "bad_request")


@pytest.mark.parametrize(
    ("details", "action", "roles"),
    [
        ({"added_user_id": 1, "role": "member"}, "add", ("member", None, None)),
        (
            {"changed_user_id": 1, "role": "admin", "previous_role": "member"},
            "update",
            (None, "member", "admin"),
        ),
        ({"removed_user_id": 1, "role": "admin"}, "remove", ("admin", None, None)),
    ],
)
def test_entries_of_version_0_2_are_shown_alike(rt, crew, clock, details, action, roles):
    with rt.transaction() as session:
        session.execute(
            sa.insert(AuditEntry).values(
                user_id=0,
                action="admin_update_team",
                entity_type="team",
                entity_id=crew.id,
                details=json.dumps(details),
                created_at=clock.now(),
            )
        )
    entry = crew.clients["owner"].get(f"{crew.path}/audit-logs?limit=1").ok()["items"][0]
    shown = entry["role"], entry["previous_role"], entry["next_role"]
    assert (entry["action"], shown) == (f"team_member_{action}", roles)


def test_who_is_added_or_removed_hears_of_it_and_reloads(rt, crew, people, mailbox):
    stranger, owner = people["stranger"], crew.clients["owner"]
    mailbox.read()
    heard = rt.redis.client.pubsub(ignore_subscribe_messages=True)
    heard.subscribe(EVENTS_CHANNEL)
    heard.get_message(timeout=5)  # that it is subscribed
    owner.post(f"{crew.path}/members", {"user_id": stranger.id, "role": "admin"}).ok(201)
    owner.patch(crew.path, {"name": "see evil.test"}).ok()
    owner.patch(crew.member("stranger"), {"role": "member"}).ok()
    owner.delete(crew.member("stranger")).ok()
    crew.clients["member"].delete(crew.member("member")).ok()
    sentences = [" ".join(text_of(message).split()) for message in mailbox.read()]
    expected = [
        "You were made an administrator of the team Crew by a member of it.",
        "You were made a member of a team by a member of it.",
        "You were removed from a team by a member of it.",
    ]
    assert len(sentences) == len(expected)  # nobody is told what they did themselves
    assert all(one in text for one, text in zip(expected, sentences, strict=True))
    them = [{"user": people[role].id} for role in ("stranger", "stranger", "member")]
    told = []
    while len(told) < len(them):
        message = json.loads(heard.get_message(timeout=5)["data"])
        if message["audience"] in them:  # others may share the channel
            told.append((message["audience"], message["event"]["kind"]))
    heard.close()
    assert told == [(audience, "sync.required") for audience in them]


def test_an_owner_hears_of_a_team_that_somebody_else_made(app, rt, admin, people, mailbox):
    heard = rt.redis.client.pubsub(ignore_subscribe_messages=True)
    heard.subscribe(EVENTS_CHANNEL)
    heard.get_message(timeout=5)  # that it is subscribed
    body = {"name": "Crew", "admin_identifier": "the_owner"}
    bearer_of(rt, app, admin).post("/admin/teams", body).ok(201)
    [message] = mailbox.read()
    sentence = "You were made an owner of the team Crew by an administrator."
    assert sentence in " ".join(text_of(message).split())
    me = {"user": people["owner"].id}
    while (told := json.loads(heard.get_message(timeout=5)["data"]))["audience"] != me:
        pass  # others may share the channel
    heard.close()
    assert told["event"]["kind"] == "sync.required"


def test_a_role_that_was_lost_while_it_waited_changes_nothing(rt, crew, people):
    with rt.reading() as session:
        account = users.get(session, people["admin"].id)
    principal = Principal(account, "", 0, False, rt.clock.now())
    by = own_teams.allowed(rt, principal, Client(), crew.id, service.require_manager)
    teams.set_role(rt, COMMAND_LINE, crew.id, people["admin"].id, TeamRole.MEMBER)
    before = len(audit_rows(rt))
    for change in (
        lambda: teams.update(rt, by, crew.id, name="Late"),
        lambda: teams.add_member(rt, by, crew.id, people["stranger"].id, TeamRole.MEMBER),
        lambda: teams.set_role(rt, by, crew.id, people["member"].id, TeamRole.ADMIN),
        lambda: teams.remove_member(rt, by, crew.id, people["member"].id),
    ):
        with pytest.raises(TeamManagerRequired):
            change()
    assert len(audit_rows(rt)) == before
    assert count(rt, TeamMember) == 3


@pytest.mark.both_databases
def test_of_two_owners_who_leave_at_once_one_stays(rt, crew, people):
    teams.set_role(rt, COMMAND_LINE, crew.id, people["admin"].id, TeamRole.OWNER)
    owners = ("owner", "admin")
    answers = run_concurrently([lambda r=r: crew.clients[r].delete(crew.member(r)) for r in owners])
    assert sorted(answer.status for answer in answers) == [200, 409]
    assert count(rt, TeamMember, TeamMember.role == TeamRole.OWNER) == 1


@pytest.mark.both_databases
def test_an_account_added_twice_at_once_is_a_member_once(rt, crew):
    who = {"identifier": "the_stranger"}
    adding = [
        lambda role=role: crew.clients[role].post(f"{crew.path}/members", who)
        for role in ("owner", "admin")
    ]
    answers = run_concurrently(adding)
    assert sorted(answer.status for answer in answers) == [201, 400]
    assert len(audit_rows(rt, "team_member_add")) == 3


@pytest.mark.both_databases
def test_a_role_changes_before_the_team_is_archived_or_not_at_all(rt, crew):
    owner = crew.clients["owner"]
    changed, archived = run_concurrently(
        [
            lambda: crew.clients["admin"].patch(crew.member("member"), {"role": "admin"}),
            lambda: owner.delete(crew.path),
        ]
    )
    assert archived.status == 200
    assert changed.status in {200, 409}
    is_admin = count(rt, TeamMember, TeamMember.role == TeamRole.ADMIN) == 2
    assert is_admin == (changed.status == 200) == (len(audit_rows(rt, "team_member_update")) == 1)


def test_what_members_called_their_teams_goes_with_the_account(rt, crew, people, clock):
    owner = crew.clients["owner"]
    owner.patch(crew.path, {"name": "Jane Doe", "description": "+49 30 1234"}).ok()
    owner.post(f"{crew.path}/members", {"identifier": "the_stranger", "role": "owner"}).ok(201)
    owner.delete("/auth/account", {"confirm": "the_owner"}).ok()
    clock.advance(minutes=6)
    erasure.scrub(rt)
    rows = [row for row in audit_rows(rt) if row.user_id == people["owner"].id]
    kept = {row.action: (row.entity_name, json.loads(row.details or "null")) for row in rows}
    assert kept["team_update"] == (None, None)
    added = {"member_user_id": people["stranger"].id, "role": "owner"}
    assert kept["team_member_add"] == (None, added)
