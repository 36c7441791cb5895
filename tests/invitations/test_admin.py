"""/admin/users/invitations."""

import pytest

from app.invitations.models import Invitation
from app.mail.models import OutboxMail
from tests.support.factories import (
    audit_rows,
    bearer_of,
    change_user,
    configure,
    count,
    make_user,
    moment,
    remove_storage_route,
)

INVITATIONS = "/admin/users/invitations"
BODY = {"email": "Guest@Example.com"}


@pytest.fixture
def boss(app, rt, admin):
    return bearer_of(rt, app, admin)


def test_an_invitation_is_mailed_and_its_link_shown_once(boss, rt, admin, mailbox):
    configure(rt, public_site_url=["https://files.example.com"])
    made = boss.post(INVITATIONS, {**BODY, "ttl_secs": 60}).ok(201)
    assert (made["email"], made["status"], made["mail_queued"]) == (
        "guest@example.com",
        "pending",
        True,
    )
    assert made["invited_by"] == admin.id
    assert (moment(made["expires_at"]) - moment(made["created_at"])).total_seconds() == 60
    assert mailbox.link(mailbox.only()) == made["invitation_url"]
    [listed] = boss.get(INVITATIONS).ok()["items"]
    assert "invitation_url" not in listed
    assert listed["mail_queued"] is False
    assert (listed["invited_by"], listed["invited_by_username"]) == (admin.id, admin.username)
    [row] = audit_rows(rt, "admin_create_invitation")
    assert (row.user_id, row.ip_address) == (admin.id, "127.0.0.1")
    assert made["invitation_url"].rpartition("/")[2] not in str(row)


def test_a_newer_one_revokes_the_older(boss, clock):
    spellings = (BODY, {"email": " GUEST@example.com "})
    first, second = (boss.post(INVITATIONS, body).ok(201) for body in spellings)
    items = boss.get(INVITATIONS).ok()["items"]
    assert moment(items[1]["revoked_at"]) == clock.now()
    assert [(each["id"], each["status"]) for each in items] == [
        (second["id"], "pending"),
        (first["id"], "revoked"),
    ]


def test_what_may_not_be_invited(boss, rt):
    boss.post(INVITATIONS, {"email": "nobody"}).fails(400, "bad_request")
    for ttl in (59, 31_536_001, None, "60"):
        boss.post(INVITATIONS, {**BODY, "ttl_secs": ttl}).fails(400, "bad_request")
    taken = {"email": make_user(rt).email}
    boss.post(INVITATIONS, taken).fails(400, "auth.email_exists")
    change_user(rt, make_user(rt), pending_email="next@example.com")
    boss.post(INVITATIONS, {"email": "next@example.com"}).fails(400, "auth.email_exists")
    assert count(rt, Invitation) == count(rt, OutboxMail) == 0
    configure(rt, auth_local_email_allowlist=["elsewhere.example"])
    boss.post(INVITATIONS, BODY).fails(400, "auth.email_not_allowlisted")
    configure(rt, auth_local_email_blocklist=["example.com"])
    boss.post(INVITATIONS, BODY).fails(400, "auth.email_blocked")


def test_it_needs_no_storage_route(boss, rt):
    remove_storage_route(rt)
    boss.post(INVITATIONS, BODY).ok(201)


@pytest.mark.both_databases
def test_pages_have_every_invitation_once_with_the_status_that_is_shown(boss, invite, clock):
    made = [invite(f"guest{n}@example.com", ttl_seconds=60 + 3600 * (n % 2)) for n in range(5)]
    boss.post(f"{INVITATIONS}/{made[1].invitation_id}/revoke").ok()
    made[3].accept().ok(201)
    clock.advance(seconds=60)
    shown = {"expired": 3, "revoked": 1, "accepted": 1, "pending": 0}
    for status, number in shown.items():
        page = boss.get(f"{INVITATIONS}?status={status}").ok()
        assert page["total"] == len(page["items"]) == number
        assert {each["status"] for each in page["items"]} <= {status}
    seen = []
    for offset in (0, 2, 4):
        page = boss.get(f"{INVITATIONS}?limit=2&offset={offset}").ok()
        assert page["total"] == 5
        seen += [each["id"] for each in page["items"]]
    assert seen == sorted((each.invitation_id for each in made), reverse=True)
    assert boss.get(INVITATIONS).ok()["limit"] == 20
    [found] = boss.get(f"{INVITATIONS}?keyword=GUEST2&status=").ok()["items"]
    assert found["email"] == "guest2@example.com"
    assert boss.get(f"{INVITATIONS}?keyword=%25").ok()["total"] == 0
    assert boss.get(f"{INVITATIONS}?keyword={seen[0]}").ok()["total"] >= 1
    boss.get(f"{INVITATIONS}?status=lost").fails(400, "bad_request")


@pytest.mark.both_databases
def test_what_nobody_has_sent_has_no_name(boss, line):
    line("invitations", "create", "guest@example.com")
    boss.post(INVITATIONS, {"email": "b@example.com"}).ok(201)
    found = boss.get(INVITATIONS).ok()["items"]
    assert [one["invited_by_username"] is None for one in found] == [False, True]


@pytest.mark.both_databases
def test_what_is_closed_is_not_revoked(app, rt, admin, boss, invite, clock):
    revoked, accepted, overdue = (invite(f"guest{n}@example.com") for n in range(3))
    shown = boss.post(f"{INVITATIONS}/{revoked.invitation_id}/revoke").ok()
    assert (shown["status"], moment(shown["revoked_at"])) == ("revoked", clock.now())
    accepted.accept().ok(201)
    clock.advance(days=3)
    boss = bearer_of(rt, app, admin)
    for guest, code in ((revoked, "revoked"), (accepted, "accepted"), (overdue, "expired")):
        path = f"{INVITATIONS}/{guest.invitation_id}/revoke"
        boss.post(path).fails(400, f"auth.invitation_{code}")
    assert count(rt, Invitation, Invitation.status == "expired") == 1
    for unknown in ("4711", "0", "x"):
        boss.post(f"{INVITATIONS}/{unknown}/revoke").fails(404, "not_found")


def test_an_invitation_is_sent_anew_by_a_new_one(app, boss, rt, guest, clock, admin):
    path = f"{INVITATIONS}/{guest.invitation_id}/resend"
    assert boss.post(path).fails(429, "rate_limited").retry_after == 60
    clock.advance(seconds=60)
    again = boss.post(path).ok(201)
    assert again["id"] != guest.invitation_id
    assert (again["invited_by"], again["mail_queued"]) == (admin.id, True)
    guest.look().fails(400, "auth.invitation_revoked")
    guest.look(again["invitation_url"].rpartition("/")[2]).ok()
    boss.post(path).fails(429, "rate_limited")
    assert [row.user_id for row in audit_rows(rt, "admin_resend_invitation")] == [admin.id]
    clock.advance(days=4)
    bearer_of(rt, app, admin).post(path).ok(201)  # a closed one tells whom to invite, too


def test_an_accepted_or_unknown_one_is_not_sent_anew(boss, guest, clock):
    clock.advance(seconds=60)
    guest.accept().ok(201)
    boss.post(f"{INVITATIONS}/{guest.invitation_id}/resend").fails(400, "auth.invitation_accepted")
    boss.post(f"{INVITATIONS}/4711/resend").fails(404, "not_found")


def test_the_command_does_the_same(line, guest, clock):
    clock.advance(seconds=60)
    made = line.json("invitations", "resend", str(guest.invitation_id))
    guest.look(made["token"]).ok()
    line.refuses("rate_limited", "invitations", "resend", str(made["id"]))
    line.refuses("not_found", "invitations", "resend", "x")
