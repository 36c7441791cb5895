"""/admin/policies, /admin/policy-groups and /admin/storage."""

import json

import pytest

from app.core.access import COMMAND_LINE
from app.storage_policies import groups, service
from app.storage_policies.models import StoragePolicyGroup
from app.storage_policies.schemas import is_local
from app.team_admin import service as teams
from tests.support.factories import (
    audit_rows,
    bearer_of,
    change_user,
    column_of,
    count,
    make_user,
    remove_storage_route,
)
from tests.support.races import run_concurrently

POLICIES = "/admin/policies"
GROUPS = "/admin/policy-groups"
DEFAULT = f"{GROUPS}/1"


@pytest.fixture
def second(rt):
    """The id of another policy."""
    return service.create_policy(rt, COMMAND_LINE, "Archive").id


@pytest.fixture
def path(boss):
    made = boss.post(GROUPS, body("Fast")).ok(201)
    return f"{GROUPS}/{made['id']}"


def item(policy_id=1, priority=1, **sizes):
    return {"policy_id": policy_id, "priority": priority, **sizes}


def body(name, *items, **more):
    return {"name": name, "items": list(items) or [item()], **more}


def test_a_policy_is_made_and_shown(boss, admin, rt):
    sizes = {"max_file_size": 10, "chunk_size": 0, "allowed_types": ["image/png"]}
    made = boss.post(POLICIES, {"name": " Archive ", **sizes}).ok(201)
    config = {"connector_id": "local", "format_version": 1, "schema_version": 1, "values": {}}
    assert made == {
        "id": made["id"],
        "name": "Archive",
        "connector_id": "local",
        "connector_config": config,
        "behavior": {},
        **sizes,
        "is_default": False,
        "created_at": "2026-03-02T09:30:00Z",
        "updated_at": "2026-03-02T09:30:00Z",
    }
    assert boss.get(f"{POLICIES}/{made['id']}").ok() == made
    assert made in boss.get(POLICIES).ok()["items"]
    boss.get(f"{POLICIES}/4711").fails(404, "not_found")
    [row] = audit_rows(rt, "admin_create_storage_policy")
    assert (row.user_id, row.entity_id, row.ip_address) == (admin.id, made["id"], "127.0.0.1")


OTHERS = ["s3", "asterdrive.storage.s3", "Local", " local", "", None, 0, 1, True, ["local"], {}]


@pytest.mark.parametrize("name", OTHERS)
def test_only_the_local_kind_of_storage_is_local(name):
    for kind in ("connector_id", "driver_type"):
        assert not is_local({kind: name})
        assert not is_local({"connector_id": "local", kind: name})
        assert not is_local(None, None, {kind: name})


def test_the_local_kind_of_storage_has_two_names():
    for name in ("local", "asterdrive.storage.local"):
        assert is_local({"connector_id": name, "values": {}})
        assert is_local({"driver_type": name}, {"connector_id": name})
        assert is_local(None, {"connector_id": name}, {})
    assert is_local(None, None, {})
    assert not is_local({})


def test_policies_for_other_storage_are_not_made_here(boss):
    for wrong in (
        {"connection": {}},
        *({"connector_id": name} for name in OTHERS),
        *({"connection": {"connector_id": name}} for name in OTHERS),
        *({"connector_config": {"connector_id": name}} for name in OTHERS),
        *({"connection": {"connector_config": {"connector_id": name}}} for name in OTHERS),
    ):
        answer = boss.post(POLICIES, {"name": "Bucket", **wrong})
        assert (answer.status, answer.code) == (400, "storage.unsupported_driver"), wrong
    assert boss.get(POLICIES).ok()["total"] == 1
    for name in ("local", "asterdrive.storage.local"):
        for right in ({"connector_id": name}, {"connection": {"connector_id": name}}):
            made = boss.post(POLICIES, {"name": "Here", **right}).ok(201)
            assert made["connector_id"] == "local"


def test_a_policy_with_nonsense_is_refused(boss):
    for wrong in (
        {"name": " "},
        {"max_file_size": -1},
        {"chunk_size": 2**63},
        {"allowed_types": "image/png"},
        {"allowed_types": [""]},
    ):
        answer = boss.post(POLICIES, {"name": "Archive", **wrong})
        assert (answer.status, answer.code) == (400, "bad_request"), wrong


@pytest.mark.both_databases
@pytest.mark.parametrize("listed", [POLICIES, GROUPS])
def test_pages_have_each_once(boss, rt, listed):
    for n in range(6):
        service.create_policy(rt, COMMAND_LINE, f"P{n % 2}")
        groups.create(rt, COMMAND_LINE, f"G{n % 2}", groups.in_order([1]))
    for column in ("id", "name", "is_default", "created_at", "updated_at"):
        for order in ("asc", "desc"):
            asked = f"{listed}?limit=3&sort_by={column}&sort_order={order}"
            pages = [boss.get(f"{asked}&offset={offset}").ok() for offset in (0, 3, 6)]
            seen = [one["id"] for page in pages for one in page["items"]]
            assert len(seen) == len(set(seen)) == pages[0]["total"] == 7
    boss.get(f"{listed}?sort_by=options").fails(400, "bad_request")


def test_a_group_is_made_and_shown(boss, admin, rt, second):
    wanted = [item(second, 2, min_file_size=1, max_file_size=9), item(1, 1)]
    made = boss.post(GROUPS, body(" Both ", *wanted, description="Two")).ok(201)
    assert (made["name"], made["description"]) == ("Both", "Two")
    shown = boss.get(f"{GROUPS}/{made['id']}").ok()
    assert shown == {**made, "users": 0, "teams": 0, "items": shown["items"]}
    assert [(one["policy_id"], one["priority"]) for one in shown["items"]] == [(1, 1), (second, 2)]
    last = shown["items"][1]
    assert (last["min_file_size"], last["max_file_size"]) == (1, 9)
    assert last["policy"] == {"id": second, "name": "Archive", "connector_id": "local"}
    [row] = audit_rows(rt, "admin_create_policy_group")
    assert (row.user_id, row.entity_id) == (admin.id, made["id"])


def test_items_that_contradict_each_other_are_refused(boss, second, path):
    for items in (
        [],
        [item(1, 0)],
        [item(1, 2**31)],
        [item(1, 1), item(1, 2)],
        [item(1, 1), item(2, 1)],
        [item(1, 1, min_file_size=-1)],
        [item(1, 1, min_file_size=5, max_file_size=5)],
        ["1"],
        None,
    ):
        for answer in (
            boss.post(GROUPS, {"name": "Odd", "items": items}),
            boss.patch(path, {"items": items}),
        ):
            assert (answer.status, answer.code) == (400, "bad_request"), items
    assert boss.get(path).ok()["items"][0]["priority"] == 1


def test_items_are_policies_that_exist(boss, path):
    boss.post(GROUPS, body("Odd", item(4711))).fails(404, "storage.policy_not_found")
    boss.patch(path, {"items": [item(4711)]}).fails(404, "storage.policy_not_found")


@pytest.mark.both_databases
def test_a_change_is_all_or_nothing_and_one_entry(boss, admin, rt, path, second):
    wanted = {"name": "Slow", "description": "Tapes", "items": [item(second, 1), item(1, 2)]}
    boss.patch(path, {**wanted, "items": [item(4711)]}).fails(404, "storage.policy_not_found")
    assert boss.get(path).ok()["name"] == "Fast"
    changed = boss.patch(path, wanted).ok()
    assert [one["policy_id"] for one in changed["items"]] == [second, 1]
    assert boss.patch(path, wanted).ok() == changed
    [row] = audit_rows(rt, "admin_update_policy_group")
    assert row.user_id == admin.id
    told = json.loads(row.details)
    assert (told["name"], told["previous_name"]) == ("Slow", "Fast")
    assert told["policy_ids"] == [second, 1]
    for name in wanted:
        boss.patch(path, {name: None}).fails(400, "bad_request")
    late = {"name": "Late", "expected_updated_at": "2020-01-01T00:00:00Z"}
    boss.patch(path, late).fails(409, "conflict")


@pytest.mark.both_databases
def test_there_is_one_default_and_it_is_enabled(boss, path):
    boss.patch(DEFAULT, {"is_default": False}).fails(400, "bad_request")
    boss.patch(DEFAULT, {"is_enabled": False}).fails(409, "conflict")
    boss.delete(DEFAULT).fails(409, "conflict")
    boss.patch(path, {"is_enabled": False}).ok()
    boss.patch(path, {"is_default": True}).fails(400, "bad_request")
    assert boss.patch(path, {"is_default": True, "is_enabled": True}).ok()["is_default"] is True
    assert boss.get(DEFAULT).ok()["is_default"] is False
    both = body("Odd", is_default=True, is_enabled=False)
    boss.post(GROUPS, both).fails(400, "bad_request")
    assert boss.get(GROUPS).ok()["total"] == 2


@pytest.mark.both_databases
def test_a_group_that_is_assigned_stays(boss, rt, path, user):
    change_user(rt, user, policy_group_id=int(path.rpartition("/")[2]))
    team = teams.create(rt, COMMAND_LINE, "Crew", user.username)
    boss.patch(f"/admin/teams/{team.id}", {"policy_group_id": int(path.rpartition("/")[2])}).ok()
    shown = boss.get(path).ok()
    assert (shown["users"], shown["teams"]) == (1, 1)
    refusal = boss.delete(path).fails(400, "bad_request")
    assert "1 user and 1 team" in refusal.json["msg"]
    boss.patch(path, {"is_enabled": False}).fails(400, "bad_request")
    change_user(rt, user, policy_group_id=1)
    boss.delete(path).fails(400, "bad_request")
    boss.post(f"{path}/migrate-assignments", {"target_group_id": 1}).ok()
    boss.delete(path).ok()
    boss.delete(path).fails(404, "not_found")
    boss.get(path).fails(404, "not_found")


@pytest.mark.both_databases
def test_a_group_deleted_twice_at_once_is_deleted_once(app, rt, admin, path):
    clients = [bearer_of(rt, app, admin) for _ in range(3)]
    answers = run_concurrently([lambda c=c: c.delete(path) for c in clients])
    assert sorted(answer.status for answer in answers) == [200, 404, 404]
    assert len(audit_rows(rt, "admin_delete_policy_group")) == 1


@pytest.mark.both_databases
def test_of_two_defaults_chosen_at_once_one_is_left(app, rt, boss, admin, path):
    other = f"{GROUPS}/{boss.post(GROUPS, body('Other')).ok(201)['id']}"
    clients = [bearer_of(rt, app, admin) for _ in range(4)]
    jobs = [
        lambda client=client, which=which: client.patch(which, {"is_default": True})
        for client, which in zip(clients, [path, other, path, other], strict=True)
    ]
    assert {answer.status for answer in run_concurrently(jobs)} == {200}
    assert count(rt, StoragePolicyGroup, StoragePolicyGroup.is_default) == 1


def test_bootstrap_finishes_the_set_up_and_may_be_repeated(boss, admin, rt):
    remove_storage_route(rt)
    route = boss.post("/admin/storage/bootstrap").ok()
    assert route["setup_state"] == "ready"
    assert column_of(rt, admin, "policy_group_id") == route["group_id"]
    assert boss.post("/admin/storage/bootstrap").ok() == route
    [row] = audit_rows(rt, "admin_create_policy_group")
    assert row.user_id == admin.id


@pytest.mark.both_databases
def test_bootstraps_at_once_make_one_route(app, rt, admin):
    remove_storage_route(rt)
    clients = [bearer_of(rt, app, admin) for _ in range(3)]
    answers = run_concurrently([lambda c=c: c.post("/admin/storage/bootstrap") for c in clients])
    assert [answer.status for answer in answers] == [200, 200, 200]
    assert count(rt, StoragePolicyGroup) == 1


def test_an_id_is_never_a_name(boss):
    boss.post(GROUPS, body("4711")).ok(201)
    for method in ("GET", "PATCH", "DELETE"):
        boss.call(method, f"/api/v1{GROUPS}/4711", {}).fails(404, "not_found")


def test_the_command_changes_name_and_policies(line, second):
    options = ("--name", "Slow", "--description", "Tapes", "--policy", "Archive", "--policy", "1")
    changed = line.json("storage", "update-group", "1", *options)
    assert (changed["name"], changed["description"]) == ("Slow", "Tapes")
    assert [one["policy_id"] for one in changed["items"]] == [second, 1]


def test_a_demoted_administrator_changes_nothing(app, rt, boss, admin, path):
    make_user(rt, role="admin")
    change_user(rt, admin, role="user")
    boss.patch(path, {"name": "Slow"}).fails(403, "auth.admin_required")
    boss.post("/admin/storage/bootstrap").fails(403, "auth.admin_required")
