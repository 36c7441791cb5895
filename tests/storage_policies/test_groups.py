"""`flask storage`: policies and groups, and the rules of groups."""

import json

import pytest

from tests.support.factories import audit_rows, column_of, make_user


@pytest.fixture
def default(line):
    """The group that the migrated database has."""
    [group] = line.json("storage", "groups")
    return group


def make_group(line, name="Fast", policy="Local storage", **options):
    flags = ["--default"] if options.get("is_default") else []
    return line.json("storage", "create-group", name, "--policy", policy, *flags)


def setup_state(api):
    return api.post("/auth/check").ok()["setup_state"]


def test_a_policy_is_created_and_listed(line, rt):
    made = line.json("storage", "create-policy", "  Archive  ")
    assert made["name"] == "Archive"
    assert made["connector_id"] == "local"
    assert made["is_default"] is False
    assert made["max_file_size"] == 0
    assert line.json("storage", "policies")[-1] == made
    [entry] = audit_rows(rt, "admin_create_storage_policy")
    assert (entry.entity_type, entry.entity_id) == ("storage_policy", made["id"])


def test_names_have_bounds(line):
    for name in ("", "   ", "x" * 129):
        line.refuses("bad_request", "storage", "create-policy", name)
        line.refuses("bad_request", "storage", "create-group", name, "--policy", "Local storage")


@pytest.mark.both_databases
def test_a_group_tries_its_policies_in_the_order_given(line, rt):
    first = line.json("storage", "create-policy", "First")
    [second, _] = line.json("storage", "policies")
    arguments = ("--policy", str(first["id"]), "--policy", second["name"])
    made = line.json("storage", "create-group", "Both", *arguments)
    assert set(made) == {
        "id",
        "name",
        "description",
        "is_enabled",
        "is_default",
        "created_at",
        "updated_at",
        "items",
    }
    assert [(i["policy_id"], i["priority"]) for i in made["items"]] == [
        (first["id"], 1),
        (second["id"], 2),
    ]
    assert (made["is_enabled"], made["is_default"]) == (True, False)
    assert line.json("storage", "groups")[-1] == made
    [entry] = audit_rows(rt, "admin_create_policy_group")
    assert json.loads(entry.details)["policy_ids"] == [first["id"], second["id"]]


def test_a_group_needs_policies_that_exist_each_once(line):
    create = ("storage", "create-group", "Group")
    assert line(*create).exit_code == 2
    line.refuses("storage.policy_not_found", *create, "--policy", "nonsense")
    twice = ("--policy", "Local storage", "--policy", "1")
    line.refuses("bad_request", *create, *twice)
    assert len(line.json("storage", "groups")) == 1


@pytest.mark.both_databases
def test_ambiguous_names_are_refused(line):
    line.json("storage", "create-policy", "Same")
    line.json("storage", "create-policy", "Same")
    create = ("storage", "create-group", "Group", "--policy", "Same")
    told = line.refuses("conflict", *create)
    ids = [policy["id"] for policy in line.json("storage", "policies") if policy["name"] == "Same"]
    assert told == f"Same means several storage policies; say which: id:{ids[0]} or id:{ids[1]}."
    first, second = make_group(line, "Twin")["id"], make_group(line, "Twin")["id"]
    told = line.refuses("conflict", "storage", "set-default", "Twin")
    assert told == f"Twin means several policy groups; say which: id:{first} or id:{second}."


def test_there_is_one_default(line, rt, default):
    made = make_group(line, is_default=True)
    assert made["is_default"] is True
    assert [g["is_default"] for g in line.json("storage", "groups")] == [False, True]
    assert line.json("storage", "set-default", str(default["id"]))["is_default"] is True
    assert [g["is_default"] for g in line.json("storage", "groups")] == [True, False]
    root = make_user(rt, username="root", role="admin")
    assert column_of(rt, root, "policy_group_id") == default["id"]
    assert line.json("storage", "set-default", str(default["id"]))["is_default"] is True
    assert len(audit_rows(rt, "admin_update_policy_group")) == 1


def test_nobody_is_assigned_to_a_disabled_group(line, user):
    made = make_group(line)
    line.json("storage", "disable-group", made["name"])
    line.refuses("bad_request", "users", "assign-group", user.username, made["name"])


def test_the_default_group_stays_in_use(line, api, user, default):
    other = make_group(line)
    line.json("storage", "migrate-assignments", default["name"], other["name"])
    for command in (("delete-group", "--yes"), ("disable-group",)):
        line.refuses("conflict", "storage", *command, default["name"])
    assert setup_state(api) == "ready"
    line.json("storage", "set-default", other["name"])
    line.json("storage", "delete-group", "--yes", default["name"])
    assert setup_state(api) == "ready"


def test_the_command_that_moves_assignments_is_named_to_commands_alone(line, boss, user, default):
    line.json("storage", "set-default", make_group(line)["name"])
    told = line.refuses("bad_request", "storage", "delete-group", "--yes", default["name"])
    assert told.endswith("`flask storage migrate-assignments` does that.")
    answer = boss.delete(f"/admin/policy-groups/{default['id']}").fails(400, "bad_request")
    assert answer.json["msg"].endswith("Move them to another one first.")


def test_an_unknown_group_is_not_found(line):
    for command in (
        ["set-default"],
        ["enable-group"],
        ["disable-group"],
        ["delete-group", "--yes"],
    ):
        told = line.refuses("not_found", "storage", *command, "nonsense")
        assert told == "There is no policy group nonsense."


def test_human_text_names_the_group(line):
    line("storage", "create-policy", "Cold\x1b[2J").text.isprintable()
    made = make_group(line, "Cold")
    assert line("storage", "disable-group", "Cold").text == f"Cold (id {made['id']}) is disabled"
