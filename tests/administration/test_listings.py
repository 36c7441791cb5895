"""`flask sessions` and `flask audit`."""

import json

import pytest
import sqlalchemy as sa

from app.audit.models import AuditEntry
from tests.support.factories import audit_rows, delete_user, make_user

SESSION = {
    "id",
    "is_current",
    "ip_address",
    "user_agent",
    "created_at",
    "last_seen_at",
    "expires_at",
}


# --- sessions --------------------------------------------------------------------------------


def test_sessions_are_listed(line, api, user):
    assert line.json("sessions", "list", user.username) == []
    api.login(user).ok()
    [entry] = line.json("sessions", "list", user.email)
    assert set(entry) == SESSION
    assert entry["is_current"] is False
    assert entry["id"] in line("sessions", "list", str(user.id)).text


def test_session_is_revoked_once(line, rt, api, user):
    api.login(user).ok()
    [entry] = line.json("sessions", "list", user.username)
    assert line.json("sessions", "revoke", entry["id"].upper()) == {"removed": 1}
    api.me().fails(401, "auth.token_invalid")
    assert line.json("sessions", "revoke", entry["id"]) == {"removed": 0}
    [row] = audit_rows(rt, "admin_revoke_user_session")
    assert (row.user_id, row.entity_type, row.entity_id) == (0, "user", user.id)
    assert entry["id"] in row.details


@pytest.mark.parametrize("session_id", ["6f1f0f0e-57f0-4b7d-9d5e-0f2d0c1b2a39", "nonsense", "1"])
def test_unknown_session_is_not_found(line, session_id):
    told = line.refuses("not_found", "sessions", "revoke", session_id)
    assert told == f"There is no session {session_id}."


# --- audit -----------------------------------------------------------------------------------


def test_audit_log_is_listed_newest_first(line, api, user):
    api.login(user).ok()
    line.json("users", "set-quota", user.username, "1")
    newest, oldest = line.json("audit", "list")
    assert set(oldest) == {
        "id",
        "user_id",
        "user",
        "action",
        "entity_type",
        "entity_id",
        "entity_name",
        "details",
        "ip_address",
        "user_agent",
        "created_at",
    }
    assert (newest["action"], newest["user_id"], newest["user"]) == ("admin_update_user", 0, None)
    changed = {"changed_fields": ["storage_quota"], "storage_quota": 1}
    assert json.loads(newest["details"]) == changed | {"previous_storage_quota": 0}
    assert oldest["action"] == "user_login"
    assert set(oldest["user"]) == {"id", "username", "profile"}
    assert oldest["created_at"] == "2026-03-02T09:30:00Z"


def test_audit_table_has_the_address_an_entry_came_from(line, api, user):
    credentials = {"identifier": user.username, "password": user.password}
    api.post("/auth/login", credentials, address="203.0.113.9").ok()
    line.json("users", "set-quota", user.username, "1")
    titles, newest, oldest = map(str.split, line("audit", "list").text.splitlines())
    assert titles == ["TIME", "USER", "ACTION", "ABOUT", "ADDRESS", "DETAILS"]
    assert newest[4] == "-"
    assert oldest[4] == "203.0.113.9"


@pytest.mark.both_databases
def test_audit_log_is_filtered(line, api, user, clock):
    api.login(user).ok()
    clock.advance(days=1)
    line.json("users", "set-quota", user.username, "1")
    for options in (
        ["--user", user.username],
        ["--user", str(user.id)],
        ["--action", "user_login"],
        ["--until", "2026-03-03T09:30:00Z"],
    ):
        assert [e["action"] for e in line.json("audit", "list", *options)] == ["user_login"]
    for options in (
        ["--user", "0"],
        ["--since", "2026-03-03"],
        ["--since", "2026-03-03T10:30:00+01:00"],
        ["--limit", "1"],
    ):
        assert [e["action"] for e in line.json("audit", "list", *options)] == ["admin_update_user"]


def test_entries_about_a_team_are_chosen_by_its_name_or_id(line, user):
    team = line.json("teams", "create", "crew", "--owner", user.username)
    line.json("teams", "create", "others", "--owner", user.username)
    for typed in ("crew", str(team["id"])):
        [entry] = line.json("audit", "list", "--team", typed)
        assert (entry["entity_type"], entry["entity_id"]) == ("team", team["id"])
    assert line.json("audit", "list", "--team", "crew", "--user", user.username) == []
    line.refuses("not_found", "audit", "list", "--team", "nobody")


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_the_audit_log_is_exported_like_over_http(line, rt, api, admin, tmp_path, kind):
    line.json("users", "set-quota", admin.username, "1")
    file = tmp_path / "log"
    options = ["--user", "0", "--format", kind, "--output", str(file)]
    assert line.json("audit", "export", *options) == {"file": str(file)}
    assert file.stat().st_mode & 0o777 == 0o600
    [row] = audit_rows(rt, "admin_export_audit_log")
    assert json.loads(row.details) == {"format": kind, "rows": 1, "filters": {"user_id": 0}}
    api.login(admin).ok()
    sent = api.get(f"/admin/audit-logs/export?action=admin_update_user&format={kind}").body
    assert file.read_bytes() == sent
    assert line("audit", "export", *options).exit_code == 1  # nothing is overwritten


def test_actions_are_listed(line, user):
    line.json("users", "set-quota", user.username, "1")
    [update] = [a for a in line.json("audit", "actions") if a["action"] == "admin_update_user"]
    about = {"action": "admin_update_user", "entity_type": "user"}
    assert update == about | {"is_recorded": True, "count_30d": 1}
    assert "admin_update_user" in line("audit", "actions").text


def test_entries_of_a_deleted_account_are_found_by_its_id(line, rt, api, user):
    api.login(user).ok()
    delete_user(rt, user)
    [entry] = line.json("audit", "list", "--user", str(user.id))
    assert entry["user"] is None
    line.refuses("not_found", "audit", "list", "--user", user.username)


@pytest.mark.parametrize(
    "options",
    [
        ["--action", "nonsense"],
        ["--since", "yesterday"],
        ["--since", "0001-01-01T00:00:00+14:00"],
        ["--limit", "0"],
    ],
)
def test_bad_filter_is_bad_usage(line, options):
    assert line("audit", "list", *options, "--json").exit_code == 2


def test_typed_names_cannot_steer_the_terminal(line, api, user):
    api.login(f"{user.username}\x0b\x1c", user.password).ok()
    text = line("audit", "list").text
    assert f"{user.username}\N{REPLACEMENT CHARACTER}" in text
    assert len(text.splitlines()) == 2


# On SQLite, version 0.1 gave the id of a deleted account to the next
def test_nobody_is_blamed_for_what_an_earlier_account_of_the_same_id_did(
    line, rt, api, user, clock
):
    earlier = make_user(rt, username="mallory")
    api.login(earlier).ok()
    line.json("users", "delete", "--yes", "mallory")
    clock.advance(minutes=1)
    later = make_user(rt, username="victim")
    with rt.transaction() as session:
        session.execute(sa.update(AuditEntry).values(user_id=later.id))
    api.stranger().login(later).ok()
    [own] = line.json("audit", "list", "--user", "victim")
    assert (own["action"], own["user"]["username"]) == ("user_login", "victim")
    [_, others] = line.json("audit", "list", "--action", "user_login")
    assert (others["user_id"], others["user"]) == (later.id, None)
