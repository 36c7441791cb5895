"""/admin/overview, /admin/doctor, /admin/maintenance/cleanup, /admin/keys."""

import json
import threading
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from app.audit import hourly
from app.audit import service as audit
from app.audit.models import Action, AuditEntry, AuditHour, EntityType, Event
from app.crypto.keyring import Keyring
from app.installation import cleanup, health
from app.store import locks
from app.users.models import User
from tests.support import outbox
from tests.support.api import ApiClient
from tests.support.factories import audit_rows, change_user, configure, count, make_user
from tests.support.races import run_concurrently

OVERVIEW = "/admin/overview"
PLANTED = "a secret planted by the test"


@pytest.fixture
def app(make_app):
    """An application whose keys are in its instance folder."""
    return make_app(secret_keys=())


@pytest.fixture
def boss(rt, api, admin):
    configure(rt, auth_access_token_ttl_secs=86400)
    api.login(admin).ok()
    return api


def forget_entries(rt):
    with rt.transaction() as session:
        session.execute(sa.delete(AuditEntry))


def enter(rt, at, *actions, **details):
    """Put entries into the log as of a time."""
    with rt.transaction() as session:
        for action in actions:
            audit.record(rt, session, Event(action, EntityType.USER, details=details or None))
            newest = sa.select(sa.func.max(AuditEntry.id)).scalar_subquery()
            moving = sa.update(AuditEntry).where(AuditEntry.id == newest)
            session.execute(moving.values(created_at=at))


# --- overview -----------------------------------------------------------------------------------


@pytest.mark.both_databases
def test_the_overview_has_all_members(boss, rt, admin):
    make_user(rt, status="disabled")
    make_user(rt, activated=False)
    make_user(rt, role="admin")
    shown = boss.get(OVERVIEW).ok()
    stats = shown["stats"]
    assert (stats["total_users"], stats["active_users"], stats["disabled_users"]) == (4, 3, 1)
    assert (stats["pending_users"], stats["administrators"]) == (1, 2)
    assert (stats["live_sessions"], stats["new_users_today"]) == (1, 4)
    assert stats["total_file_bytes"] == stats["uploads_today"] == 0
    assert shown["recent_background_tasks"] == []
    assert shown["is_audit_log_enabled"] is True
    assert [report["date"] for report in shown["daily_reports"]][:2] == ["2026-03-02", "2026-03-01"]
    assert len(shown["daily_reports"]) == shown["days"] == 7
    event = shown["recent_events"][0]
    assert (event["action"], event["user"]["id"]) == ("user_login", admin.id)


@pytest.mark.both_databases
def test_bounds_are_clamped_and_an_unknown_zone_is_refused(boss):
    shown = boss.get(f"{OVERVIEW}?days=1000&event_limit=0").ok()
    assert (shown["days"], len(shown["daily_reports"])) == (90, 90)
    assert len(shown["recent_events"]) == 1
    for query in ("timezone=Mars/Olympus", "timezone=../etc/passwd", "timezone=", "days=many"):
        boss.get(f"{OVERVIEW}?{query}").fails(400, "bad_request")


@pytest.mark.both_databases
def test_a_sign_in_counts_once_it_is_complete(boss, rt, clock):
    forget_entries(rt)
    now = clock.now()
    enter(rt, now, Action.USER_LOGIN, mfa_required=True)
    enter(rt, now, Action.USER_MFA_CHALLENGE_FAILED, Action.USER_MFA_CHALLENGE_SUCCESS)
    enter(rt, now, Action.USER_LOGIN, mfa_required=False)
    enter(rt, now, Action.USER_LOGIN_FAILED, Action.USER_DELETE_ACCOUNT)
    enter(
        rt,
        now,
        Action.USER_EMAIL_CODE_SIGN_IN,
        Action.USER_REGISTER,
        Action.ADMIN_FORCE_DELETE_USER,
    )
    clock.advance(seconds=1)

    def today():
        return boss.get(OVERVIEW).ok()["daily_reports"][0]

    expected = {
        "date": "2026-03-02",
        "sign_ins": 3,
        "failed_sign_ins": 2,
        "new_users": 1,
        "deletions": 2,
        "password_resets": 0,
        "uploads": 0,
        "share_creations": 0,
        "total_events": 9,
    }
    assert today() == expected
    clock.advance(hours=2)
    cleanup.cleanup(rt)
    forget_entries(rt)
    assert today() == expected


@pytest.mark.both_databases
def test_days_begin_at_midnight_of_the_zone(boss, rt, clock):
    forget_entries(rt)
    enter(rt, datetime(2026, 3, 1, 23, 30, tzinfo=UTC), Action.USER_PASSKEY_LOGIN)
    enter(rt, datetime(2026, 3, 2, 9, 29, tzinfo=UTC), Action.USER_PASSKEY_LOGIN)

    def sign_ins(zone):
        reports = boss.get(f"{OVERVIEW}?days=3&timezone={zone}").ok()["daily_reports"]
        return [(report["date"][-2:], report["sign_ins"]) for report in reports]

    for _ in range(2):
        assert sign_ins("UTC") == [("02", 1), ("01", 1), ("28", 0)]
        assert sign_ins("Europe/Berlin") == [("02", 2), ("01", 0), ("28", 0)]
        assert sign_ins("Pacific/Kiritimati") == [("02", 2), ("01", 0), ("28", 0)]
        assert sign_ins("America/Los_Angeles") == [("02", 1), ("01", 1), ("28", 0)]
        cleanup.cleanup(rt)


@pytest.mark.both_databases
def test_hours_are_counted_once_whoever_counts_them(rt, clock):
    began = clock.now()
    for hours in (30, 29, 5, 1, 0):
        enter(rt, began - timedelta(hours=hours), *[Action.USER_LOGIN] * 3)
    run_concurrently([lambda: hourly.count_finished_hours(rt)] * 4)
    assert hourly.count_finished_hours(rt) == 0
    assert count(rt, AuditHour) == 4
    clock.advance(hours=1)
    assert hourly.count_finished_hours(rt) == 1
    with rt.reading() as session:
        assert session.scalar(sa.select(sa.func.sum(AuditHour.n))) == 15
    clock.advance(days=100)
    hourly.count_finished_hours(rt)
    assert count(rt, AuditHour) == 0


@pytest.mark.both_databases
@pytest.mark.parametrize("left", [0, 1])
def test_an_hour_is_counted_although_another_cleanup_deletes_its_entries(rt, monkeypatch, left):
    enter(rt, rt.clock.now() - timedelta(days=2), *[Action.USER_LOGIN] * 3)
    find = hourly.queries.find_first_time

    def overtaken(*arguments):
        monkeypatch.setattr(hourly.queries, "find_first_time", find)
        found = find(*arguments)
        hourly.count_finished_hours(rt)
        with rt.transaction() as session:
            kept = sa.select(AuditEntry.id).limit(left)
            session.execute(sa.delete(AuditEntry).where(AuditEntry.id.not_in(kept)))
        return found

    monkeypatch.setattr(hourly.queries, "find_first_time", overtaken)
    hourly.count_finished_hours(rt)
    with rt.reading() as session:
        assert session.scalar(sa.select(sa.func.sum(AuditHour.n))) == 3


def test_a_log_that_is_off_is_told_and_what_it_has_is_shown(boss, rt, clock):
    enter(rt, clock.now(), Action.USER_PASSKEY_LOGIN)
    configure(rt, audit_log_enabled=False)
    clock.advance(seconds=1)
    before = boss.get(OVERVIEW).ok()
    assert before["is_audit_log_enabled"] is False
    assert before["daily_reports"][0]["sign_ins"] == 2
    assert before["stats"]["audit_events_today"] == before["daily_reports"][0]["total_events"] > 2
    assert before["recent_events"][0]["action"] == "config_update"
    make_user(rt)
    assert boss.get(OVERVIEW).ok()["stats"]["total_users"] == 2


def test_health_is_what_housekeeping_found_last(boss, rt, clock):
    assert boss.get(OVERVIEW).ok()["system_health"]["status"] == "unknown"
    health.examine(rt)
    found = boss.get(OVERVIEW).ok()["system_health"]
    assert (found["status"], found["task_id"]) == ("healthy", None)
    assert [part["name"] for part in found["components"]] == ["database", "cache", "mail"]
    outbox.queue(rt)
    clock.advance(minutes=6)
    health.examine(rt)
    found = boss.get(OVERVIEW).ok()["system_health"]
    assert (found["status"], found["components"][2]["status"]) == ("degraded", "degraded")
    assert found["summary"].startswith("mail: A mail has been waiting for 6 minutes")


def test_the_command_shows_the_same(line, boss):
    shown = line.json("overview", "--days", "2")
    assert len(shown["daily_reports"]) == 2
    assert shown["stats"] == boss.get(f"{OVERVIEW}?days=2").ok()["stats"]
    assert "TOTAL EVENTS" in line("overview").text
    line.refuses("bad_request", "overview", "--timezone", "Mars/Olympus")


def test_the_version_is_told(boss):
    assert boss.get("/admin/system-info").ok()["version"].count(".") == 2


# --- doctor, cleanup ----------------------------------------------------------------------------


def test_the_doctor_tells_all_and_never_fails(boss, rt):
    with rt.transaction() as session:
        session.execute(sa.text("DELETE FROM storage_policy_groups"))
    told = boss.get("/admin/doctor").ok()
    levels = {check["level"] for check in told["checks"]}
    assert told["worst"] == next(one for one in ("fail", "warn", "ok") if one in levels)
    assert told["setup_state"] == "needs_storage"
    assert {"redis", "database", "mail"} <= {check["check"] for check in told["checks"]}
    for check in told["checks"]:
        assert set(check) == {"check", "level", "message", "sentences"}
        filled = [s["template"].format_map(s["values"]) for s in check["sentences"]]
        assert " ".join(filled) == check["message"]
    assert "flask" not in json.dumps(told)


def test_the_doctor_is_not_asked_all_the_time(boss):
    for _ in range(10):
        boss.get("/admin/doctor").ok()
    assert boss.get("/admin/doctor").fails(429, "rate_limited").retry_after > 0


@pytest.mark.both_databases
def test_cleaning_up_is_done_and_recorded(boss, rt, admin, clock):
    answer = boss.post("/admin/maintenance/cleanup").ok()
    assert set(answer) == set(cleanup.CLEANUPS)
    boss.post("/admin/maintenance/cleanup").ok()
    entry = audit_rows(rt, "config_action_execute")[0]
    assert (entry.user_id, entry.entity_name) == (admin.id, "maintenance")
    assert '"action": "cleanup"' in entry.details
    change_user(rt, admin, role="user")
    boss.post("/admin/maintenance/cleanup").fails(403, "auth.admin_required")


@pytest.mark.both_databases
def test_cleanups_at_once_delete_each_entry_once(boss, rt):
    enter(rt, rt.clock.now() - timedelta(days=400), Action.USER_LOGIN, Action.USER_LOGOUT)
    answers = run_concurrently([lambda: boss.post("/admin/maintenance/cleanup")] * 4)
    assert [answer.status for answer in answers] == [200] * 4
    assert sum(answer.data["audit_entries"] for answer in answers) == 2


# --- keys ---------------------------------------------------------------------------------------


def test_keys_are_listed_without_their_values(boss, rt):
    answer = boss.get("/admin/keys")
    told = answer.ok()
    assert (told["source"], told["unreadable_secrets"]) == ("file", 0)
    assert [key["is_signing"] for key in told["keys"]] == [True]
    assert '"secret"' not in answer.text


@pytest.mark.both_databases
def test_rotation_asks_for_a_fresh_confirmation(boss, rt, clock, admin):
    other = make_user(rt, role="admin")
    before = boss.get("/admin/keys").ok()["keys"][0]["id"]
    configure(rt, mail_smtp_password=PLANTED)
    clock.advance(minutes=14)
    done = boss.post("/admin/keys/rotate").ok()
    assert (done["resealed"], done["unreadable"]) == (1, 0)
    kept = boss.get("/admin/keys").ok()["keys"]
    assert [key["id"] for key in kept] == [done["key"]["id"], before]
    [entry] = audit_rows(rt, "config_action_execute")
    assert (entry.user_id, entry.ip_address is None) == (admin.id, False)
    assert other.email in {row.recipient for row in outbox.rows(rt)}
    clock.advance(minutes=2)
    boss.post("/admin/keys/rotate").fails(412, "precondition_failed")


@pytest.mark.both_databases
def test_rotations_follow_one_another(boss, rt, monkeypatch):
    """The second one begins when the first has encrypted everything anew."""
    running, most = [0], [0]
    rotate = Keyring.rotate
    pause = rt.clock.sleep

    def count_in(self):
        running[0] += 1
        most[0] = max(most[0], running[0])
        return rotate(self)

    def count_out(seconds):
        threading.Event().wait(0.2)
        running[0] -= 1
        pause(seconds)

    monkeypatch.setattr(Keyring, "rotate", count_in)
    monkeypatch.setattr(rt.clock, "sleep", lambda s: count_out(s) if s > 1 else pause(s))
    answers = run_concurrently([lambda: boss.post("/admin/keys/rotate")] * 3)
    assert [answer.status for answer in answers] == [200, 200, 200]
    assert most == [1]
    assert len({answer.data["key"]["id"] for answer in answers}) == 3


def test_who_is_demoted_while_waiting_for_a_lock_changes_nothing(boss, rt, admin, monkeypatch):
    hold, key_id = locks.hold, rt.keyring.current().key_id

    def demote_and_hold(session, name):
        session.execute(sa.update(User).where(User.id == admin.id).values(role="user"))
        hold(session, name)

    monkeypatch.setattr(locks, "hold", demote_and_hold)
    title = "/admin/config/branding_title"
    boss.put(title, {"value": "Drive"}).fails(403, "auth.admin_required")
    boss.post("/admin/keys/rotate").fails(403, "auth.admin_required")
    monkeypatch.undo()
    assert boss.get(title).ok()["is_set"] is False
    assert rt.keyring.current().key_id == key_id
    assert audit_rows(rt, "config_action_execute") == []


def test_keys_of_the_environment_are_not_rotated_here(make_app, admin):
    api = ApiClient(make_app(secret_keys=(("old", b"the key of last year, 32 bytes long"),)))
    api.login(admin).ok()
    assert api.get("/admin/keys").ok()["source"] == "environment"
    api.post("/admin/keys/rotate").fails(409, "conflict")
