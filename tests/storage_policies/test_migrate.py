"""POST /admin/policy-groups/{id}/migrate-assignments and its command."""

import json

import pytest
import sqlalchemy as sa

from app.sessions import service as sessions
from app.storage_policies import migration
from app.storage_policies.models import StoragePolicyGroupItem
from app.teams.models import Team
from app.users.models import User
from tests.support.factories import (
    audit_rows,
    change_user,
    column_of,
    count,
    make_user,
    moment,
)

SOURCE = 1


@pytest.fixture
def root(rt, api):
    root = make_user(rt, username="root", role="admin")
    api.login(root).ok()
    return root


@pytest.fixture
def target(line):
    return line.json("storage", "create-group", "Target", "--policy", "Local storage")["id"]


def migrate(api, source, target, **options):
    body = {"target_group_id": target}
    return api.post(f"/admin/policy-groups/{source}/migrate-assignments", body, **options)


def assigned(rt, group_id):
    return count(rt, User, User.policy_group_id == group_id)


@pytest.mark.both_databases
def test_users_and_teams_move_and_are_counted(rt, api, line, root, target, clock):
    users = [make_user(rt) for _ in range(3)]
    stays = make_user(rt)
    change_user(rt, stays, policy_group_id=None)
    line.json("teams", "create", "Crew", "--owner", users[0].username)
    line.json("teams", "create", "Old crew", "--owner", users[0].username)
    line.json("teams", "archive", "--yes", "Old crew")
    now = clock.advance(minutes=1)
    assert migrate(api, SOURCE, target).ok() == {
        "source_group_id": SOURCE,
        "target_group_id": target,
        "affected_users": 4,
        "affected_teams": 2,
        "migrated_assignments": 6,
    }
    assert (assigned(rt, SOURCE), assigned(rt, target)) == (0, 4)
    assert count(rt, Team, Team.policy_group_id == target) == 2
    assert column_of(rt, users[1], "updated_at") == now
    assert column_of(rt, stays, "policy_group_id") is None
    for team in line.json("teams", "list", "--archived"):
        assert moment(team["updated_at"]) == now
    api.me().ok()


def test_it_is_one_transaction_with_two_updates_however_many_move(rt, api, root, target):
    for _ in range(20):
        make_user(rt)
    updates, commits = [], []
    engine = rt.database.engine
    sa.event.listen(engine, "commit", lambda *_: commits.append(1))
    sa.event.listen(engine, "before_cursor_execute", lambda *a: updates.append(a[2].split()[:2]))
    migrate(api, SOURCE, target).ok()
    assert [s[1] for s in updates if s[0] == "UPDATE"] == ["users", "teams"]
    assert len(commits) == 1


def test_again_it_moves_nothing_and_is_recorded_all_the_same(rt, api, root, target):
    migrate(api, SOURCE, target).ok()
    answer = migrate(api, SOURCE, target).ok()
    assert (answer["affected_users"], answer["migrated_assignments"]) == (0, 0)
    first, second = audit_rows(rt, "admin_migrate_policy_group_users")
    assert (first.user_id, first.entity_type, first.entity_id) == (root.id, "policy_group", SOURCE)
    assert first.entity_name == "Default Policy Group"
    assert first.ip_address == "127.0.0.1"
    assert json.loads(first.details) == {
        "source_group_id": SOURCE,
        "source_group_name": "Default Policy Group",
        "target_group_id": target,
        "target_group_name": "Target",
        "affected_users": 1,
        "affected_teams": 0,
        "migrated_assignments": 1,
    }
    assert json.loads(second.details)["migrated_assignments"] == 0


def test_the_source_may_be_disabled_and_empty(rt, api, line, root, target):
    change_user(rt, root, policy_group_id=target)
    with rt.transaction() as session:
        session.execute(sa.text("UPDATE storage_policy_groups SET is_enabled = false WHERE id > 1"))
        session.execute(
            sa.delete(StoragePolicyGroupItem).where(StoragePolicyGroupItem.group_id == target)
        )
    assert migrate(api, target, SOURCE).ok()["affected_users"] == 1


def test_a_bad_body_is_refused_before_the_source_is_looked_for(api, root):
    for body in (
        b"",
        b"[]",
        b"{",
        b"{}",
        b'{"target_group_id": null}',
        b'{"target_group_id": "2"}',
        b'{"target_group_id": true}',
        b'{"target_group_id": 1.5}',
        b'{"target_group_id": 9223372036854775808}',
        b'{"target_group_id": 0}',
        b'{"target_group_id": -1}',
        b'{"target_group_id": 1e19}',
        b'{"target_group_id": 1e999}',
    ):
        answer = api.post("/admin/policy-groups/999/migrate-assignments", body)
        assert (answer.status, answer.code) == (400, "bad_request"), body


def test_a_whole_number_may_be_written_with_a_fraction_of_nothing(api, root):
    path = "/admin/policy-groups/999/migrate-assignments"
    api.post(path, b'{"target_group_id": 2.0}').fails(404, "not_found")


def test_a_target_below_one_is_told_so(api, root):
    assert "greater than 0" in migrate(api, 999, 0).fails(400, "bad_request").json["msg"]


def test_an_unknown_source_or_target_is_not_found(api, root):
    for source in ("999", "0", "-1", "abc", "1.5", "9" * 30):
        assert migrate(api, source, SOURCE).code == "not_found", source
    for target in (999, 2**63 - 1):
        migrate(api, SOURCE, target).fails(404, "not_found")


def test_source_and_target_differ(api, root):
    answer = migrate(api, SOURCE, SOURCE).fails(400, "bad_request")
    assert "same" in answer.json["msg"]


def test_the_same_group_is_named_before_its_being_disabled(rt, api, line, root, target):
    line.json("storage", "disable-group", "Target")
    answer = migrate(api, target, target).fails(400, "bad_request")
    assert "same" in answer.json["msg"]


def test_a_disabled_target_is_refused_before_an_empty_one(rt, api, line, root, target):
    with rt.transaction() as session:
        session.execute(
            sa.delete(StoragePolicyGroupItem).where(StoragePolicyGroupItem.group_id == target)
        )
    assert "no policy" in migrate(api, SOURCE, target).fails(400, "bad_request").json["msg"]
    line.json("storage", "disable-group", "Target")
    assert "disabled" in migrate(api, SOURCE, target).fails(400, "bad_request").json["msg"]
    assert assigned(rt, SOURCE) == 1
    assert audit_rows(rt, "admin_migrate_policy_group_users") == []


# --- who may -----------------------------------------------------------------------------------


def test_strangers_and_ordinary_users_may_not(rt, api, root, target):
    migrate(api.stranger(), SOURCE, target).fails(401, "auth.token_missing")
    user = api.stranger()
    user.login(make_user(rt)).ok()
    answer = migrate(user, SOURCE, target).fails(403, "auth.admin_required")
    assert answer.json["msg"] == "admin role required"
    # Who may not is not told what a body or a group is like.
    user.post("/admin/policy-groups/999/migrate-assignments", b"{").fails(
        403, "auth.admin_required"
    )


def test_the_role_is_the_accounts_of_this_moment(rt, api, root, target):
    token = api.access_token
    change_user(rt, root, role="user")
    migrate(api, SOURCE, target).fails(403, "auth.admin_required")
    migrate(api.bearer(token), SOURCE, target).fails(403, "auth.admin_required")
    change_user(rt, root, role="admin")
    migrate(api, SOURCE, target).ok()


@pytest.mark.parametrize(
    ("columns", "code"),
    [
        ({"role": "user"}, "auth.admin_required"),
        ({"status": "disabled"}, "auth.account_disabled"),
    ],
)
def test_a_former_administrator_moves_nothing_once_the_body_is_here(
    rt, api, root, target, monkeypatch, columns, code
):
    real = migration.migrate_assignments

    def late(*arguments, **options):
        change_user(rt, root, **columns)
        return real(*arguments, **options)

    monkeypatch.setattr(migration, "migrate_assignments", late)
    migrate(api, SOURCE, target).fails(403, code)
    assert audit_rows(rt, "admin_migrate_policy_group_users") == []


def test_whose_sessions_were_ended_when_the_body_is_here_moves_nothing(
    rt, api, root, target, monkeypatch
):
    """The operator has just shut out whoever stole the administrator's session."""
    real = migration.migrate_assignments

    def late(*arguments, **options):
        with rt.transaction() as session:
            sessions.revoke_all(rt, session, root.id)
        return real(*arguments, **options)

    monkeypatch.setattr(migration, "migrate_assignments", late)
    migrate(api, SOURCE, target).fails(401, "auth.token_invalid")
    assert audit_rows(rt, "admin_migrate_policy_group_users") == []


# --- the command -------------------------------------------------------------------------------


def test_the_command_is_the_same_operation(rt, line, root, target):
    moved = line.json("storage", "migrate-assignments", "Default Policy Group", str(target))
    assert moved == {
        "source_group_id": SOURCE,
        "target_group_id": target,
        "affected_users": 1,
        "affected_teams": 0,
        "migrated_assignments": 1,
    }
    [entry] = audit_rows(rt, "admin_migrate_policy_group_users")
    assert (entry.user_id, entry.ip_address) == (0, None)
    text = line("storage", "migrate-assignments", "Target", "1").text
    assert text == f"moved 1 user and 0 teams from policy group {target} to 1"


def test_the_command_refuses_what_the_operation_refuses(line, root, target):
    migrate = ("storage", "migrate-assignments")
    line.refuses("not_found", *migrate, "999", "Target")
    line.refuses("not_found", *migrate, "1", "999")
    line.refuses("bad_request", *migrate, "1", "1")
    line.json("storage", "disable-group", "Target")
    line.refuses("bad_request", *migrate, "1", "Target")
