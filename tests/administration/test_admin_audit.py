"""/admin/audit-logs."""

import csv
import io
import json
import tracemalloc
from datetime import timedelta

import pytest
import sqlalchemy as sa

from app.audit.models import Action, AuditEntry
from app.audit.queries import SORT_COLUMNS
from app.audit_log import export as audit_export
from app.store.search import folded_column
from tests.support.factories import audit_rows, configure, delete_user, make_user

LOGS = "/admin/audit-logs"
EXPORT = f"{LOGS}/export"
SECRET = "sekret-value-4711"


@pytest.fixture
def add(rt):
    """Write entries directly, each a second after the one before."""

    def write(*entries):
        now = rt.clock.now()
        usual = {"user_id": 0, "action": "user_login", "entity_type": "user", "created_at": now}
        rows = [
            {**usual, "created_at": now + timedelta(seconds=n), **entry}
            for n, entry in enumerate(entries)
        ]
        optional = ("entity_id", "entity_name", "details", "ip_address", "user_agent")
        rows = [dict.fromkeys(optional) | row for row in rows]
        for row in rows:
            row["entity_name_folded"] = folded_column(row["entity_name"])
        with rt.transaction() as session:
            session.execute(sa.insert(AuditEntry), rows)

    return write


def rows_of(answer):
    assert answer.status == 200, answer
    return list(csv.DictReader(io.StringIO(answer.body.decode("utf-8-sig"), newline="")))


def test_entries_have_their_actor(boss, admin, rt):
    other = make_user(rt)
    boss.patch(f"/admin/users/{other.id}", {"storage_quota": 7}).ok()
    delete_user(rt, other)
    page = boss.get(LOGS).ok()
    assert (page["total"], page["limit"], page["offset"]) == (2, 50, 0)
    newest, login = page["items"]
    assert login["action"] == "user_login"
    assert newest["user"]["username"] == admin.username
    assert (newest["user_id"], newest["entity_id"]) == (admin.id, other.id)
    assert json.loads(newest["details"])["storage_quota"] == 7
    assert newest["ip_address"] == "127.0.0.1"


@pytest.mark.both_databases
@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("column", list(SORT_COLUMNS))
def test_pages_and_batches_have_every_entry_once(boss, add, monkeypatch, column, order):
    monkeypatch.setattr(audit_export, "BATCH", 2)
    add(*({"entity_name": f"n{n % 3}" if n % 2 else None} for n in range(9)))
    asked = f"entity_type=user&sort_by={column}&sort_order={order}"
    pages = [boss.get(f"{LOGS}?{asked}&limit=4&offset={n}").ok() for n in (0, 4, 8)]
    seen = [item["id"] for page in pages for item in page["items"]]
    assert len(seen) == len(set(seen)) == pages[0]["total"] == 9
    assert [int(row["id"]) for row in rows_of(boss.get(f"{EXPORT}?{asked}"))] == seen


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("user_id=0", 4),
        ("user_id=1", 1),
        ("action=server_start", 1),
        ("action=nonsense", 0),
        ("entity_type=team&entity_id=9", 1),
        ("keyword=100%25", 1),
        ("keyword=CREW", 1),
        ("ip_address=192.0.2.7", 1),
        ("actor=user", 1),
        ("actor=cli", 2),
        ("actor=system", 2),
        ("after=2026-03-02T09:30:03Z", 2),
        ("before=2026-03-02T09:30:03Z", 3),
        ("action=&actor=&after=&user_id=", 5),
    ],
)
def test_filters_choose_and_count_alike(boss, rt, add, query, expected):
    with rt.transaction() as session:
        session.execute(sa.delete(AuditEntry))
    add(
        {"action": "server_start", "entity_type": "system_config"},
        {"action": "admin_update_team", "entity_type": "team", "entity_id": 9},
        {"action": "admin_update_team", "entity_name": "100% Crew"},
        {"action": "user_login", "ip_address": "192.0.2.7"},
        {"user_id": 1},
    )
    page = boss.get(f"{LOGS}?{query}&limit=1000").ok()
    assert (page["total"], len(page["items"]), page["limit"]) == (expected, expected, 200)
    assert len(rows_of(boss.get(f"{EXPORT}?{query}"))) == expected


@pytest.mark.parametrize(
    "query",
    [
        "after=yesterday",
        "before=2026-03-02T09:30:00",
        "after=0001-01-01T00:00:00%2B23:00",
        "user_id=-1",
        "user_id=9223372036854775808",
        "entity_id=one",
        "actor=robot",
        "sort_by=details",
    ],
)
def test_a_filter_that_cannot_be_read_is_refused(boss, query):
    boss.get(f"{LOGS}?{query}").fails(400, "bad_request")
    boss.get(f"{EXPORT}?{query}").fails(400, "bad_request")


def test_an_export_is_a_file_and_is_recorded(boss, admin, rt):
    answer = boss.get(f"{EXPORT}?action=user_login&after=2020-01-01T00:00:00Z")
    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
    name = "gatehouse-audit-2026-03-02.csv"
    assert answer.headers["Content-Disposition"] == f'attachment; filename="{name}"'
    names = ",".join(audit_export.COLUMNS)
    assert answer.body.startswith(f"\ufeff{names}\r\n".encode())
    assert answer.body.count("\ufeff".encode()) == 1
    [row] = rows_of(answer)
    assert (row["actor_username"], row["action"]) == (admin.username, "user_login")
    [entry] = audit_rows(rt, "admin_export_audit_log")
    assert (entry.user_id, entry.ip_address) == (admin.id, "127.0.0.1")
    filters = {"action": "user_login", "since": "2020-01-01T00:00:00Z"}
    assert json.loads(entry.details) == {"format": "csv", "rows": 1, "filters": filters}


def test_an_export_does_not_write_down_whom_it_was_about(boss, rt):
    boss.get(f"{EXPORT}?keyword=ada@example.com&ip_address=203.0.113.77")
    [entry] = audit_rows(rt, "admin_export_audit_log")
    assert json.loads(entry.details)["filters"] == {"keyword": True, "ip_address": True}


def test_to_ask_what_an_export_would_be_exports_nothing(boss, rt):
    assert boss.call("HEAD", EXPORT).status == 200
    assert audit_rows(rt, "admin_export_audit_log") == []


def test_no_page_of_another_site_can_cause_an_export(boss, rt):
    boss.headers = {"Sec-Fetch-Site": "cross-site"}
    boss.get(EXPORT).fails(403, "auth.request_source_untrusted")
    assert audit_rows(rt, "admin_export_audit_log") == []


WIDE = ["\uff1d1+1", "\uff0b1", "\uff0d1", "\uff20A1"]


def test_no_cell_is_a_formula_and_any_text_is_one_cell(boss, add):
    formulas = ["=1+1", "+1", "-1", "@SUM(1)", "\t=1", "\rA", *WIDE]
    texts = ['a "b", c\r\nd', "é,;'", "1=1", "李娜"]
    add(*({"entity_name": name, "user_agent": name} for name in formulas + texts))
    found = rows_of(boss.get(f"{EXPORT}?actor=cli&sort_by=id&sort_order=asc"))
    expected = [f"'{name}" for name in formulas] + texts
    assert [row["entity_name"] for row in found] == expected
    assert [row["user_agent"] for row in found] == expected


def test_no_formula_begins_where_other_languages_begin_a_cell(boss, add):
    add({"user_agent": "agent;=1+1"}, {"user_agent": "agent\n@SUM(1)"}, {"user_agent": "a; b=1"})
    found = rows_of(boss.get(f"{EXPORT}?actor=cli&sort_by=id&sort_order=asc"))
    written = [row["user_agent"] for row in found]
    assert written == ["agent;'=1+1", "agent\n'@SUM(1)", "a; b=1"]


def test_secrets_are_in_no_export(boss, add):
    details = {
        "client_secret": SECRET,
        "must_change_password": True,
        "nested": [{"accessToken": SECRET, "fine": 1}],
        "password_hash": SECRET,
    }
    add({"details": json.dumps(details)})
    kept = {"must_change_password": True, "nested": [{"fine": 1}]}
    answer = boss.get(f"{EXPORT}?actor=cli")
    assert SECRET not in answer.text
    assert json.loads(rows_of(answer)[0]["detail"]) == kept
    lines = boss.get(f"{EXPORT}?actor=cli&format=jsonl")
    assert SECRET not in lines.text
    assert lines.headers["Content-Type"] == "application/x-ndjson"
    [line] = map(json.loads, lines.text.splitlines())
    assert line["details"] == kept
    assert (line["action"], line["username"]) == ("user_login", None)


def test_members_of_teams_have_columns(boss, admin, user, add):
    roles = {"changed_user_id": user.id, "role": "admin", "previous_role": "member"}
    add(
        {"details": json.dumps({"added_user_id": user.id, "role": "member"})},
        {"details": json.dumps(roles)},
        {"details": json.dumps({"removed_user_id": 4711})},
    )
    found = rows_of(boss.get(f"{EXPORT}?actor=cli&sort_by=id&sort_order=asc"))
    names = ("member_user_id", "member_username", "role", "previous_role", "next_role")
    assert [tuple(row[name] for name in names) for row in found] == [
        (str(user.id), user.username, "member", "", ""),
        (str(user.id), user.username, "", "member", "admin"),
        ("4711", "", "", "", ""),
    ]


def test_a_long_export_is_streamed(boss, add, monkeypatch):
    monkeypatch.setattr(audit_export, "BATCH", 20)
    add(*({"details": json.dumps({"note": "x" * 5000})} for _ in range(600)))
    client = boss.app.test_client()
    headers = {"Authorization": f"Bearer {boss.access_token}"}
    response = client.get(f"/api/v1{EXPORT}?actor=cli", headers=headers)
    pieces = iter(response.response)
    head, *first = next(pieces), next(pieces)
    tracemalloc.start()  # for a while only: it makes everything slow
    some = sum(len(next(pieces)) for _ in range(20))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    lines = sum(piece.count(b"\r\n") for piece in (head, *first, *pieces))
    response.close()
    assert some > 2_000_000
    assert peak < some / 2, peak
    assert lines == 601 - 20 * audit_export.BATCH


def test_an_export_that_is_too_long_is_refused_before_it_begins(boss, rt, add, monkeypatch):
    monkeypatch.setattr(audit_export, "MAX_ROWS", 3)
    add({}, {}, {})
    assert len(rows_of(boss.get(f"{EXPORT}?actor=cli"))) == 3
    add({})
    boss.get(f"{EXPORT}?actor=cli").fails(507, "operation.resource_limit_exceeded")
    assert len(audit_rows(rt, "admin_export_audit_log")) == 1


@pytest.mark.both_databases
def test_an_export_asks_for_a_confirmation_if_the_setting_says_so(boss, rt, clock):
    configure(rt, auth_confirmation_max_age_secs=60)
    clock.advance(seconds=61)
    boss.get(EXPORT).fails(412, "precondition_failed")
    boss.get(LOGS).ok()


def test_actions_say_whether_they_are_recorded_and_how_often(boss, rt, add):
    configure(rt, audit_log_recorded_actions=["user_login"])
    add({"created_at": rt.clock.now() - timedelta(days=31)})
    found = {item["action"]: item for item in boss.get(f"{LOGS}/actions").ok()}
    assert len(found) == len(Action)
    assert found["user_login"] == {
        "action": "user_login",
        "entity_type": "auth_session",
        "is_recorded": True,
        "count_30d": 1,
    }
    assert found["admin_update_team"]["entity_type"] == "team"
    assert found["admin_update_team"]["is_recorded"] is False
    configure(rt, audit_log_enabled=False)
    assert not any(item["is_recorded"] for item in boss.get(f"{LOGS}/actions").ok())
