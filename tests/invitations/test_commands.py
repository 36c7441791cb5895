"""`flask invitations`."""

import pytest

from app.invitations.models import Invitation
from tests.support.factories import (
    audit_rows,
    configure,
    count,
    delete_all_users,
    moment,
    remove_storage_route,
)
from tests.support.mailbox import html_of, text_of

ADMIN_INVITATION = {
    "id",
    "email",
    "status",
    "invited_by",
    "accepted_user_id",
    "expires_at",
    "created_at",
    "updated_at",
    "accepted_at",
    "revoked_at",
    "mail_queued",
}
CREATE = ("invitations", "create", "Guest@Example.com")
SITE = "https://files.example.com"


# --- create ----------------------------------------------------------------------------------


def test_create_prints_the_invitation_with_link_and_token(line, clock):
    made = line.json(*CREATE)
    assert set(made) == ADMIN_INVITATION | {"invitation_url", "token"}
    assert (made["email"], made["status"]) == ("guest@example.com", "pending")
    assert moment(made["created_at"]) == moment(made["updated_at"]) == clock.now()
    assert (moment(made["expires_at"]) - clock.now()).total_seconds() == 259_200
    assert made["mail_queued"] is True
    for name in ("invited_by", "accepted_user_id", "accepted_at", "revoked_at"):
        assert made[name] is None, name
    assert made["invitation_url"] == f"/invite/{made['token']}"


def test_the_link_is_the_sites(rt, line):
    configure(rt, public_site_url=[SITE, "https://other.example.com"])
    made = line.json(*CREATE)
    assert made["invitation_url"] == f"{SITE}/invite/{made['token']}"


def test_create_prints_link_and_token_for_people(rt, line):
    configure(rt, public_site_url=[SITE])
    fields = dict(text.split(maxsplit=1) for text in line(*CREATE).text.splitlines())
    assert fields["invitation_url"] == f"{SITE}/invite/{fields['token']}"
    assert fields["email"] == "guest@example.com"


def test_its_life_can_be_chosen(line, mailbox):
    made = line.json(*CREATE, "--ttl", "86400")
    life = moment(made["expires_at"]) - moment(made["created_at"])
    assert life.total_seconds() == 86400
    assert "1 day" in text_of(mailbox.only())


def test_its_life_comes_from_the_setting(rt, line):
    configure(rt, auth_user_invitation_ttl_secs=1234)
    made = line.json(*CREATE)
    life = moment(made["expires_at"]) - moment(made["created_at"])
    assert life.total_seconds() == 1234


@pytest.mark.both_databases
def test_an_earlier_one_that_is_overdue_is_expired(line, clock):
    first = line.json(*CREATE)
    clock.advance(days=4)
    line.json(*CREATE)
    listed = {entry["id"]: entry for entry in line.json("invitations", "list")}
    assert listed[first["id"]]["status"] == "expired"
    assert listed[first["id"]]["revoked_at"] is None


def test_it_may_be_created_before_the_installation_is_ready(rt, line):
    remove_storage_route(rt)
    delete_all_users(rt)
    line.json(*CREATE)


def test_bad_usage_exits_2(rt, line):
    for arguments in (
        ["invitations", "create"],
        [*CREATE, "--ttl", "0"],
        [*CREATE, "--ttl", "-1"],
        [*CREATE, "--ttl", "31536001"],
        [*CREATE, "--ttl", "soon"],
        ["invitations", "revoke"],
        ["invitations", "list", "--nonsense"],
    ):
        assert line(*arguments).exit_code == 2, arguments
    assert line(*CREATE, "--ttl", "0", "--json").exit_code == 2
    assert count(rt, Invitation) == 0


def test_marks_of_an_address_stay_text_in_the_mail(line, mailbox):
    line.json("invitations", "create", "a&b{{x}}'q@example.com")
    message = mailbox.only()
    assert message["To"].addresses[0].addr_spec == "a&b{{x}}'q@example.com"
    assert "a&b{{x}}" not in html_of(message)
    assert "a&amp;b{{x}}" in html_of(message)


# --- list ------------------------------------------------------------------------------------


@pytest.mark.both_databases
def test_list_is_an_array_the_newest_first(line, clock):
    assert line.json("invitations", "list") == []
    for number in range(3):
        line.json("invitations", "create", f"guest{number}@example.com")
        clock.advance(seconds=number)  # the first two are of the same moment
    listed = line.json("invitations", "list")
    assert [entry["email"][:6] for entry in listed] == ["guest2", "guest1", "guest0"]
    assert all(set(entry) == ADMIN_INVITATION for entry in listed)
    assert {entry["mail_queued"] for entry in listed} == {False}


def test_list_shows_overdue_ones_as_expired_and_writes_nothing(rt, line, clock):
    made = line.json(*CREATE, "--ttl", "60")
    clock.advance(seconds=60)
    [entry] = line.json("invitations", "list")
    assert (entry["status"], entry["updated_at"]) == ("expired", made["updated_at"])
    assert count(rt, Invitation, Invitation.status == "pending") == 1


def test_list_prints_a_table(line):
    assert line("invitations", "list").text == ""
    made = line.json(*CREATE)
    titles, row = line("invitations", "list").text.splitlines()
    assert titles.split() == ["ID", "E-MAIL", "STATUS", "CREATED", "EXPIRES"]
    assert row.split() == [
        str(made["id"]),
        "guest@example.com",
        "pending",
        made["created_at"],
        made["expires_at"],
    ]
    assert made["token"] not in row


def test_an_accepted_one_names_its_account(line, guest, rt):
    account = guest.accept().ok(201)
    [entry] = line.json("invitations", "list")
    assert (entry["status"], entry["accepted_user_id"]) == ("accepted", account["id"])
    assert entry["accepted_at"] is not None
    # It goes with the account: nothing keeps the address of somebody who is gone.
    line.json("users", "delete", "--yes", "guest")
    assert line.json("invitations", "list") == []


# --- revoke ----------------------------------------------------------------------------------


def test_revoke_says_so(line):
    made = line.json(*CREATE)
    text = line("invitations", "revoke", str(made["id"])).text
    assert text == "the invitation of guest@example.com was revoked"


EMPTY = '""'


def test_an_unknown_one_is_not_found(line, guest):
    for typed in ("4711", "0", "x", "", "9" * 30, "guest@example.com", "1.0"):
        line.refuses("not_found", "invitations", "revoke", typed)
        complaint = line("invitations", "revoke", typed).complains()
        assert complaint == f"Error: There is no invitation {typed or EMPTY}."


# --- the audit log -----------------------------------------------------------------------------


def test_creation_and_revocation_are_recorded_without_the_token(rt, line):
    made = line.json(*CREATE)
    line.json("invitations", "revoke", str(made["id"]))
    line.refuses("auth.invitation_revoked", "invitations", "revoke", str(made["id"]))
    line.refuses("bad_request", "invitations", "create", "nobody")
    rows = [row for row in audit_rows(rt) if row.entity_type == "invitation"]
    actions = [row.action for row in rows]
    assert actions == ["admin_create_invitation", "admin_revoke_invitation"]
    for row in rows:
        assert (row.user_id, row.entity_id) == (0, made["id"])
        assert row.entity_name == "guest@example.com"
        assert made["token"] not in str(row)
