"""Lists of more rows than PostgreSQL counts in no time."""

import pytest
import sqlalchemy as sa

from app.audit.models import AuditEntry
from app.store import paging
from tests.support.factories import add_many, audit_rows

LOGS = "/admin/audit-logs"
USERS = "/admin/users"

pytestmark = pytest.mark.both_databases


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """Let 40 rows be many."""
    monkeypatch.setattr(paging, "MAX_COUNTED", 40)


@pytest.fixture
def known(boss, rt):
    """Have 100 accounts, which the planner knows of; return how many there are."""
    add_many(rt, 100)
    number = boss.get(f"{USERS}?limit=1&offset=1000").ok()["total"]
    with rt.database.engine.connect() as connection:
        connection.exec_driver_sql("ANALYZE")
        connection.commit()
    return number


def add_entries(rt, number, **columns):
    entry = {"user_id": 0, "action": "user_login", "entity_type": "user", **columns}
    entry["created_at"] = rt.clock.now()
    with rt.transaction() as session:
        session.execute(sa.insert(AuditEntry), [entry] * number)


def is_exact(rt):
    return rt.database.is_sqlite


def test_a_long_list_is_estimated_where_counting_is_slow(boss, rt, known):
    page = boss.get(f"{USERS}?limit=20").ok()
    assert page["total_is_exact"] is is_exact(rt)
    assert page["total"] == pytest.approx(known, rel=0 if is_exact(rt) else 0.2)
    assert len(page["items"]) == 20


@pytest.mark.parametrize("offset", [90, 1000])
def test_the_end_of_a_list_and_what_is_beyond_it_are_exact(boss, known, offset):
    page = boss.get(f"{USERS}?limit=20&offset={offset}").ok()
    assert (page["total"], page["total_is_exact"]) == (known, True)


def test_what_a_filter_finds_little_of_is_exact(boss, known):
    page = boss.get(f"{USERS}?role=admin&limit=1").ok()
    assert (page["total"], page["total_is_exact"]) == (1, True)


@pytest.mark.parametrize(
    ("path", "query"),
    [
        (USERS, "keyword=many&status=active&created_before=2100-01-01T00:00:00Z"),
        (USERS, "keyword=many&has_second_factor=false"),
        (LOGS, "actor=cli&keyword=ten%25&after=2020-01-01T00:00:00Z"),
    ],
)
def test_every_filter_can_be_explained(boss, rt, known, path, query):
    """With percent signs, lists of values, moments; how good the estimate is depends on them."""
    add_entries(rt, 50, entity_name="ten% of it")
    page = boss.get(f"{path}?{query}&limit=20").ok()
    assert page["total_is_exact"] is is_exact(rt)
    assert page["total"] > paging.MAX_COUNTED


def test_a_full_page_has_a_next_one_however_little_is_expected(boss, rt, known):
    """The planner has not looked since the rows were added."""
    add_entries(rt, 200)
    number, seen = len(audit_rows(rt)), 0
    for offset in range(0, number, 50):
        page = boss.get(f"{LOGS}?limit=50&offset={offset}").ok()
        seen += len(page["items"])
        assert page["total"] >= min(number, offset + 51)
    assert (seen, page["total"], page["total_is_exact"]) == (number, number, True)


def test_the_overview_names_its_estimates(boss, rt, known):
    overview = boss.get("/admin/overview").ok()
    stats, estimated = overview["stats"], overview["estimated_stats"]
    many = {"total_users", "active_users", "pending_users", "new_users_today"}
    assert set(estimated) == (set() if is_exact(rt) else many)
    assert stats["total_users"] == pytest.approx(known, rel=0 if is_exact(rt) else 0.2)
    assert stats["administrators"] == 1
