"""GET /auth/activity."""

import json
from datetime import timedelta

import pytest
import sqlalchemy as sa

from app.audit.models import AuditEntry
from app.core.client import Client
from app.login.errors import CredentialsFailed
from app.login.password import check_password
from tests.support.authenticator import enable_totp
from tests.support.factories import audit_rows, bearer_of, configure, make_user
from tests.support.races import run_concurrently

PATH = "/auth/activity"
FAILED = "user_login_failed"


def actions(client, query=""):
    return [item["action"] for item in client.get(f"{PATH}{query}").ok()["items"]]


def guess(client, user, times=1):
    for _ in range(times):
        client.login(user, "not hers").fails(401, "auth.credentials_failed")


def test_an_owner_sees_what_was_done_and_from_where(api, user):
    agent = {"User-Agent": "Firefox"}
    api.login(user, headers=agent).ok()
    [item] = api.get(PATH).ok()["items"]
    assert item.pop("id") > 0
    assert item == {
        "action": "user_login",
        "at": "2026-03-02T09:30:00Z",
        "by": "me",
        "entity_type": "auth_session",
        "entity_name": user.username,
        "details": {"mfa_required": False, "password_change_required": False},
        "ip_address": "127.0.0.1",
        "user_agent": "Firefox",
    }


@pytest.mark.both_databases
def test_of_an_administrator_only_the_deed_is_seen(rt, app, signed_in, user, line):
    boss = make_user(rt, username="boss", role="admin")
    change = {"storage_quota": 7}
    bearer_of(rt, app, boss).patch(f"/admin/users/{user.id}", change).ok()
    line.json("users", "set-quota", user.username, "8")
    by_command, by_boss, _ = signed_in.get(PATH).ok()["items"]
    assert (by_boss["by"], by_command["by"]) == ("administrator", "system")
    assert (by_boss["action"], by_boss["entity_type"]) == ("admin_update_user", "user")
    assert by_boss["details"] == {
        "changed_fields": ["storage_quota"],
        "storage_quota": 7,
        "previous_storage_quota": 0,
    }
    assert "boss" not in json.dumps(by_boss)
    for name in ("entity_name", "ip_address", "user_agent"):
        assert by_boss[name] is None


@pytest.mark.both_databases
def test_nothing_of_others_is_seen(rt, app, signed_in, user):
    other = make_user(rt)
    bearer_of(rt, app, other).patch("/auth/profile", {"display_name": "Other"}).ok()
    with rt.transaction() as session:
        # The id of an account, and of something else.
        columns = {"action": "admin_update_team", "entity_type": "team", "entity_id": user.id}
        now = rt.clock.now()
        session.execute(sa.insert(AuditEntry).values(user_id=other.id, created_at=now, **columns))
    assert actions(signed_in) == ["user_login"]


def test_details_that_are_not_known_to_be_harmless_are_left_out(rt, signed_in, user):
    details = json.dumps({"role": "user", "user_id": 1, "email": "x@example.com"})
    with rt.transaction() as session:
        columns = {"action": "admin_update_user", "entity_type": "user", "entity_id": user.id}
        now = rt.clock.now()
        row = {"user_id": 1, "created_at": now, "details": details, **columns}
        session.execute(sa.insert(AuditEntry).values(**row))
    assert signed_in.get(PATH).ok()["items"][0]["details"] == {"role": "user"}


@pytest.mark.both_databases
def test_pages_and_filters(signed_in, clock):
    for name in ("A", "B", "C"):
        clock.advance(minutes=1)
        signed_in.patch("/auth/profile", {"display_name": name}).ok()
    page = signed_in.get(f"{PATH}?limit=2&offset=1").ok()
    assert (page["total"], page["limit"], page["offset"]) == (4, 2, 1)
    assert [item["details"]["display_name"] for item in page["items"]] == ["B", "A"]
    assert actions(signed_in, "?action=user_login") == ["user_login"]
    assert len(actions(signed_in, "?after=2026-03-02T09:31:00Z&before=2026-03-02T09:32:00Z")) == 1
    assert signed_in.get(f"{PATH}?limit=1000").ok()["limit"] == 100
    assert signed_in.get(PATH).ok()["limit"] == 20
    signed_in.get(f"{PATH}?after=yesterday").fails(400, "bad_request")


def test_a_guess_at_the_password_is_seen_and_one_at_a_name_is_not(api, user, rt):
    guess(api, user)
    api.login("nobody-has-this", "not hers").fails(401, "auth.credentials_failed")
    api.login(user).ok()
    _, failed = api.get(PATH).ok()["items"]
    assert (failed["action"], failed["by"], failed["details"]) == (FAILED, "me", {})
    assert failed["ip_address"] == "127.0.0.1"
    assert len(audit_rows(rt, FAILED)) == 1


def test_a_guesser_leaves_twenty_entries_an_hour_and_no_more(api, user, rt, clock):
    for network in range(3):
        address = f"192.0.2.{network}"
        for _ in range(9):
            api.login(user, "not hers", address=address).fails(401, "auth.credentials_failed")
    assert len(audit_rows(rt, FAILED)) == 20
    other = make_user(rt)
    guess(api, other)
    clock.advance(hours=1, seconds=1)
    guess(api, user)
    assert len(audit_rows(rt, FAILED)) == 22


def test_nothing_is_recorded_where_the_settings_say_so(api, user, rt):
    configure(rt, audit_log_recorded_actions=["user_login"])
    guess(api, user)
    assert audit_rows(rt, FAILED) == []


def test_a_refused_code_is_seen(signed_in, rt, user, clock):
    totp = enable_totp(signed_in, clock)
    other = signed_in.stranger()
    token = other.login(user).ok()["flow_token"]
    body = {"flow_token": token, "method": "totp", "code": totp.app.wrong_code()}
    other.post("/auth/mfa/challenge/verify", body).fails(401, "auth.mfa_code_invalid")
    newest = signed_in.get(PATH).ok()["items"][0]
    assert newest["action"] == "user_mfa_challenge_failed"
    assert newest["details"]["attempt_count"] == 1


@pytest.mark.both_databases
def test_many_at_once_write_no_more_than_twenty(rt, app, user):
    def refused(number):
        with pytest.raises(CredentialsFailed):
            check_password(rt, user.username, "not hers", Client(f"198.51.100.{number}"))

    for number in range(15):
        refused(number)
    run_concurrently([lambda number=number: refused(number) for number in range(20, 32)])
    assert len(audit_rows(rt, FAILED)) == 20


def test_an_entry_older_than_the_hour_makes_room(api, user, rt):
    with rt.transaction() as session:
        before = rt.clock.now() - timedelta(hours=1, seconds=1)
        columns = {"user_id": user.id, "action": FAILED, "entity_type": "auth_session"}
        rows = [{**columns, "created_at": before} for _ in range(20)]
        session.execute(sa.insert(AuditEntry), rows)
    guess(api, user)
    assert len(audit_rows(rt, FAILED)) == 21
