"""/admin/users."""

import pytest

from app.users import service as users
from tests.support import outbox
from tests.support.factories import audit_rows, change_user, configure, make_user
from tests.support.races import run_concurrently

USERS = "/admin/users"
INFO = {
    "id",
    "username",
    "email",
    "email_verified",
    "pending_email",
    "role",
    "status",
    "is_activated",
    "must_change_password",
    "storage_used",
    "storage_quota",
    "policy_group_id",
    "created_at",
    "updated_at",
    "profile",
}


def path(user):
    return f"{USERS}/{user.id}"


def stored(rt, user):
    with rt.reading() as session:
        return users.get(session, user.id)


@pytest.mark.both_databases
def test_pages_have_every_account_once(boss, rt):
    made = [make_user(rt) for _ in range(7)]
    seen = []
    for offset in (0, 3, 6, 9):
        page = boss.get(f"{USERS}?limit=3&offset={offset}&sort_by=role&sort_order=asc").ok()
        seen += [item["id"] for item in page["items"]]
        assert (page["limit"], page["offset"], page["total"]) == (3, offset, 8)
        assert all(set(item) == INFO for item in page["items"])
    assert sorted(seen) == sorted(set(seen))
    assert {user.id for user in made} < set(seen)


@pytest.mark.parametrize("sort_by", ["id", "username", "email", "created_at", "updated_at"])
@pytest.mark.parametrize("order", ["asc", "desc"])
def test_pages_by_any_column_never_overlap(boss, rt, sort_by, order):
    for number in (3, 1, 2):
        make_user(rt, username=f"{'B' if number % 2 else 'b'}{number}")
    query = f"sort_by={sort_by}&sort_order={order}"
    whole = [item["id"] for item in boss.get(f"{USERS}?{query}").ok()["items"]]
    pages = [boss.get(f"{USERS}?{query}&limit=1&offset={n}").ok()["items"] for n in range(4)]
    assert [item["id"] for page in pages for item in page] == whole
    assert len(set(whole)) == 4
    names = [item[sort_by] for item in boss.get(f"{USERS}?{query}").ok()["items"]]
    keys = [name.lower() if isinstance(name, str) else name for name in names]
    assert keys == sorted(keys, reverse=order == "desc")


def test_accounts_made_between_two_pages_repeat_none_and_hide_none(boss, rt):
    made = {make_user(rt).id for _ in range(5)}
    seen = []
    for offset in (0, 2, 4, 6):
        query = f"sort_by=id&sort_order=asc&limit=2&offset={offset}"
        seen += [item["id"] for item in boss.get(f"{USERS}?{query}").ok()["items"]]
        make_user(rt)
    assert len(seen) == len(set(seen)) == 8
    assert made < set(seen)


@pytest.mark.both_databases
def test_the_total_counts_what_the_filter_finds(boss, rt, clock):
    waiting = make_user(rt, activated=False)
    off = make_user(rt, status="disabled")
    clock.advance(seconds=10)
    late = make_user(rt, policy_group_id=None)
    ago, now = "2026-03-02T09:30:05Z", "2026-03-02T09:30:10Z"
    wanted = {
        "status=pending": {waiting.id},
        "status=disabled": {off.id},
        "status=active": {1, waiting.id, late.id},
        "role=admin": {1},
        "policy_group_id=1": {1, waiting.id, off.id},
        f"created_after={now}": {late.id},
        f"created_before={ago}&role=user": {waiting.id, off.id},
        "policy_group_id=4711": set(),
        "role=&status=&policy_group_id=": {1, waiting.id, off.id, late.id},
    }
    for query, ids in wanted.items():
        page = boss.get(f"{USERS}?{query}").ok()
        assert {item["id"] for item in page["items"]} == ids, query
        assert page["total"] == len(ids)


@pytest.mark.parametrize(
    "query",
    [
        "policy_group_id=9223372036854775808",
        "policy_group_id=x",
        "created_after=2026-03-02T09:30:00",
        "created_after=0001-01-01T00:00:00%2B23:00",
        "has_second_factor=perhaps",
        "keyword=%00",
        f"keyword={'x' * 256}",
    ],
)
def test_a_filter_that_cannot_be_read_is_refused(boss, query):
    boss.get(f"{USERS}?{query}").fails(400, "bad_request")


def test_bounds_are_clamped_and_nonsense_is_refused(boss):
    page = boss.get(f"{USERS}?limit=9999&offset=-3&_=1").ok()
    assert (page["limit"], page["offset"]) == (100, 0)
    for query in ("limit=many", "sort_by=password_hash", "sort_order=up", "role=god"):
        boss.get(f"{USERS}?{query}").fails(400, "bad_request")


@pytest.mark.both_databases
def test_search_takes_wildcards_literally(boss, rt):
    bob = make_user(rt, username="bob_1", email="bob@example.net")
    make_user(rt, username="bobx1", email="other@example.net")

    def found(keyword):
        return [item["id"] for item in boss.get(f"{USERS}?keyword={keyword}").ok()["items"]]

    assert found("BOB_") == [bob.id]
    assert found("%25") == []
    assert found(str(bob.id)) == [bob.id]
    assert len(found("example.NET")) == 2
    assert len(found("%20")) == 3


def test_a_change_is_all_or_nothing_and_one_entry(boss, admin, rt, user):
    wanted = {"role": "admin", "storage_quota": 7, "policy_group_id": 4711}
    boss.patch(path(user), wanted).fails(404, "not_found")
    assert stored(rt, user).role == "user"
    del wanted["policy_group_id"]
    changed = boss.patch(path(user), wanted).ok()
    assert (changed["role"], changed["storage_quota"]) == ("admin", 7)
    assert boss.patch(path(user), wanted).ok()["updated_at"] == changed["updated_at"]
    [row] = audit_rows(rt, "admin_update_user")
    assert (row.user_id, row.entity_id) == (admin.id, user.id)
    assert row.ip_address is not None


def test_a_change_meant_for_another_state_is_refused(boss, rt, user):
    seen = boss.get(path(user)).ok()["updated_at"]
    boss.patch(path(user), {"storage_quota": 1, "expected_updated_at": seen}).ok()
    late = {"storage_quota": 2, "expected_updated_at": "2020-01-01T00:00:00Z"}
    boss.patch(path(user), late).fails(409, "conflict")
    assert stored(rt, user).storage_quota == 1


@pytest.mark.parametrize(
    "change",
    [
        {"role": "user"},
        {"status": "disabled"},
        {"email_verified": False},
        {"must_change_password": True},
    ],
)
def test_administrators_do_not_lock_themselves_out(boss, rt, admin, change):
    make_user(rt, role="admin")
    boss.patch(path(admin), change).fails(409, "conflict")
    assert boss.me().ok()["role"] == "admin"


def test_an_id_is_never_a_name(boss, rt, user):
    make_user(rt, username="4711")
    for method, body in (("GET", None), ("PATCH", {"storage_quota": 1}), ("DELETE", None)):
        boss.call(method, f"/api/v1{USERS}/4711", body).fails(404, "not_found")
        boss.call(method, f"/api/v1{USERS}/0{user.id}", body).fails(404, "not_found")


def test_deleting_checks_the_name_if_it_is_told(boss, rt, user):
    boss.call("DELETE", f"/api/v1{path(user)}?confirm=eve").fails(400, "bad_request")
    boss.call("DELETE", f"/api/v1{path(user)}?confirm={user.username.upper()}").ok()
    boss.call("DELETE", f"/api/v1{path(user)}").fails(404, "not_found")


def test_a_generated_password_is_shown_once(boss, api):
    body = {"username": "bob", "email": "bob@example.com", "password": ""}
    made = boss.post(USERS, body).ok(201)
    assert made["user"]["must_change_password"] is True
    login = boss.stranger().login("bob", made["generated_password"]).ok()
    assert login["status"] == "password_change_required"
    other = {"username": "eve", "email": "eve@example.com", "password": "chosen by the boss"}
    assert set(boss.post(USERS, other).ok(201)) == {"user"}


@pytest.mark.both_databases
def test_administrators_who_demote_each_other_leave_one(app, rt, admin, api):
    rivals = [admin, *(make_user(rt, role="admin") for _ in range(3))]
    clients = [api, *(api.stranger() for _ in rivals[1:])]
    for client, account in zip(clients, rivals, strict=True):
        client.login(account).ok()
    victims = [*rivals[1:], rivals[0]]
    answers = run_concurrently(
        [
            lambda client=client, victim=victim: client.patch(path(victim), {"role": "user"})
            for client, victim in zip(clients, victims, strict=True)
        ]
    )
    assert {answer.status for answer in answers} <= {200, 403, 409}
    assert sum(stored(rt, one).role == "admin" for one in rivals) >= 1


def test_a_confirmation_is_asked_for_once_the_setting_says_so(boss, clock, rt, user):
    clock.advance(seconds=120)
    boss.patch(path(user), {"role": "admin"}).ok()
    configure(rt, auth_confirmation_max_age_secs=60)
    boss.patch(path(user), {"role": "user", "storage_quota": 2}).ok()
    boss.patch(path(user), {"role": "admin"}).fails(412, "precondition_failed")
    many = {"ids": [user.id], "action": "delete"}
    boss.post(f"{USERS}/bulk", many).fails(412, "precondition_failed")
    assert boss.post(f"{USERS}/bulk", {**many, "action": "disable"}).ok()["done"] == [user.id]
    boss.put(f"{path(user)}/email", {"email": "new@example.com"}).fails(412, "precondition_failed")
    boss.delete(f"{path(user)}/mfa").fails(412, "precondition_failed")
    boss.get(path(user)).ok()


def test_the_other_administrators_hear_of_a_new_one(boss, rt, admin, user):
    other = make_user(rt, role="admin")
    boss.patch(path(user), {"role": "admin"}).ok()
    told = {row.recipient for row in outbox.rows(rt)}
    assert other.email in told
    assert admin.email not in told


@pytest.mark.parametrize("loss", [{"role": "user"}, {"status": "disabled"}])
def test_a_former_administrator_is_told(boss, rt, loss):
    other = make_user(rt, role="admin")
    boss.patch(path(other), loss).ok()
    assert [row.recipient for row in outbox.rows(rt)] == [other.email]


def test_a_role_that_was_taken_away_changes_nothing_any_more(boss, rt, admin, user):
    change_user(rt, admin, role="user")
    boss.patch(path(user), {"storage_quota": 2}).fails(403, "auth.admin_required")
