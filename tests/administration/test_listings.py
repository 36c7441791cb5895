"""`flask sessions` and `flask audit`."""

import pytest

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


def test_sessions_of_nobody_are_not_found(line):
    line.refuses("not_found", "sessions", "list", "nobody")


def test_session_is_revoked_once(line, rt, api, user):
    api.login(user).ok()
    [entry] = line.json("sessions", "list", user.username)
    assert line.json("sessions", "revoke", entry["id"].upper()) == {"removed": 1}
    api.me().fails(401, "auth.token_invalid")
    assert line.json("sessions", "revoke", entry["id"]) == {"removed": 0}
    [row] = audit_rows(rt, "user_revoke_session")
    assert (row.user_id, row.entity_type) == (0, "auth_session")
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
    assert newest["details"] == '{"storage_quota": 1}'
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


@pytest.mark.any_database  # SQLite gives the id of a deleted account to the next one
def test_nobody_is_blamed_for_what_an_earlier_account_of_the_same_id_did(
    line, rt, api, user, clock
):
    earlier = make_user(rt, username="mallory")
    api.login(earlier).ok()
    line.json("users", "delete", "mallory")
    clock.advance(minutes=1)
    later = make_user(rt, username="victim")
    assert later.id == earlier.id
    api.stranger().login(later).ok()
    [own] = line.json("audit", "list", "--user", "victim")
    assert (own["action"], own["user"]["username"]) == ("user_login", "victim")
    [_, others] = line.json("audit", "list", "--action", "user_login")
    assert (others["user_id"], others["user"]) == (earlier.id, None)
