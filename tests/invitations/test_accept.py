"""POST /auth/invitations/{token}/accept."""

import pytest
import sqlalchemy as sa

from app.core.access import COMMAND_LINE
from app.crypto.tokens import digest
from app.invitations import service
from app.invitations.models import Invitation
from app.setup import service as setup
from app.storage_policies.models import StoragePolicyGroup
from app.users.models import User
from tests.invitations.conftest import GUEST
from tests.support.factories import (
    audit_rows,
    change_user,
    configure,
    count,
    make_user,
    remove_storage_route,
)


def stored(rt, guest):
    with rt.reading() as session:
        return session.get(Invitation, guest.invitation_id)


def insist_open(rt, guest, accounts=1):
    """Nothing has happened to the invitation, and nobody came to exist."""
    row = stored(rt, guest)
    assert (row.status, row.accepted_at, row.accepted_user_id) == ("pending", None, None)
    assert row.updated_at == row.created_at
    assert count(rt, User) == accounts
    assert audit_rows(rt, "user_register") == []


@pytest.mark.both_databases
def test_it_makes_an_ordinary_account_of_the_invited_address(rt, guest, clock):
    configure(rt, default_storage_quota=4096)
    clock.advance(minutes=5)
    answer = guest.accept()
    account = answer.ok(201)
    assert (account["username"], account["email"]) == ("Guest", "guest@example.com")
    assert (account["role"], account["status"]) == ("user", "active")
    assert account["email_verified"] is True
    assert account["must_change_password"] is False
    assert account["pending_email"] is None
    assert account["storage_quota"] == 4096
    assert account["policy_group_id"] is not None
    assert answer.set_cookies == {}
    row = stored(rt, guest)
    assert (row.status, row.accepted_user_id) == ("accepted", account["id"])
    assert (row.accepted_at, row.updated_at) == (clock.now(), clock.now())
    assert row.revoked_at is None


def test_the_account_is_open_at_once_even_where_activation_is_needed(rt, guest):
    configure(rt, auth_register_activation_enabled="true")
    guest.accept().ok(201)
    assert guest.client.login("guest", GUEST["password"]).ok()["status"] == "authenticated"


def test_no_mail_follows(guest, mailbox):
    mailbox.read()
    guest.accept().ok(201)
    assert mailbox.read() == []


def test_it_is_audited_without_secrets(rt, guest):
    account = guest.accept(headers={"User-Agent": "Firefox"}).ok(201)
    [entry] = audit_rows(rt, "user_register")
    assert (entry.user_id, entry.entity_id) == (account["id"], account["id"])
    assert (entry.entity_type, entry.entity_name) == ("user", "Guest")
    assert (entry.ip_address, entry.user_agent) == ("127.0.0.1", "Firefox")
    assert guest.token not in str(entry)
    assert GUEST["password"] not in str(entry)


def test_the_client_cannot_choose_address_role_or_quota(guest):
    forged = {"email": "other@example.com", "role": "admin", "storage_quota": 1, "id": 99}
    account = guest.accept(**forged).ok(201)
    assert (account["email"], account["role"]) == ("guest@example.com", "user")
    assert account["storage_quota"] == 0


def test_it_works_once(rt, guest):
    guest.accept().ok(201)
    guest.accept(username="Other").fails(400, "auth.invitation_accepted")
    assert count(rt, User) == 2


def test_it_works_while_registration_is_closed(rt, guest):
    configure(rt, auth_allow_user_registration=False)
    guest.accept().ok(201)


def test_the_token_is_trimmed(guest):
    guest.accept(token=f" {guest.token} ").ok(201)


def test_only_a_digest_of_the_token_is_stored(rt, guest):
    assert len(guest.token) == 43
    with rt.reading() as connection:
        [kept] = connection.execute(sa.select(Invitation.token_digest)).scalars()
    assert kept == digest(guest.token)


# --- refusals ----------------------------------------------------------------------------------


def test_an_unknown_token_is_invalid(rt, guest):
    for token in ("x", " ", "' OR 1=1 --"):
        guest.accept(token=token).fails(400, "auth.invitation_invalid")
    insist_open(rt, guest)


def test_a_revoked_one_makes_nobody(rt, guest):
    service.revoke(rt, COMMAND_LINE, str(guest.invitation_id))
    guest.accept().fails(400, "auth.invitation_revoked")
    assert count(rt, User) == 1


@pytest.mark.both_databases
def test_an_overdue_one_makes_nobody_and_is_expired(rt, guest, clock):
    clock.advance(days=3)
    guest.accept().fails(400, "auth.invitation_expired")
    assert stored(rt, guest).status == "expired"
    assert count(rt, User) == 1


def test_the_last_moment_is_in_time(guest, clock):
    clock.advance(seconds=259_199.9)
    guest.accept().ok(201)


@pytest.mark.both_databases
@pytest.mark.parametrize("column", ["email", "pending_email"])
def test_an_address_that_somebody_got_meanwhile_is_taken(rt, guest, column):
    change_user(rt, make_user(rt), **{column: "guest@example.com"})
    guest.accept().fails(400, "auth.email_exists")
    insist_open(rt, guest, accounts=2)


def test_a_taken_username_leaves_it_open(rt, guest):
    for username in ("BOSS", " boss ", "Boss"):
        guest.accept(username=username).fails(400, "auth.username_exists")
    insist_open(rt, guest)
    guest.accept().ok(201)


def test_what_breaks_a_rule_leaves_it_open(rt, guest):
    for changes in (
        {"username": "a"},
        {"username": "with space"},
        {"username": "line\r\nBcc: x@example.com"},
        {"username": None},
        {"password": "1234567"},
        {"password": "x" * 129},
        {"password": "x" * 4097},
        {"password": 12345678},
    ):
        answer = guest.accept(**changes)
        assert (answer.status, answer.code) == (400, "bad_request"), changes
    insist_open(rt, guest)


def test_both_fields_are_needed(guest):
    for field in GUEST:
        body = {name: value for name, value in GUEST.items() if name != field}
        answer = guest.client.post(f"{guest.path()}/accept", body).fails(400, "bad_request")
        assert field in answer.json["msg"]


def test_the_email_policy_of_the_day_applies(rt, guest):
    configure(rt, auth_local_email_allowlist=["elsewhere.example"])
    guest.accept().fails(400, "auth.email_not_allowlisted")
    configure(rt, auth_local_email_blocklist=["example.com"])
    guest.accept().fails(400, "auth.email_blocked")
    insist_open(rt, guest)
    configure(rt, auth_local_email_allowlist=[], auth_local_email_blocklist=[])
    guest.accept().ok(201)


def test_a_refusal_costs_no_hash(rt, guest, monkeypatch):
    monkeypatch.setattr(type(rt.passwords), "hash", lambda *_: pytest.fail("a hash"))
    guest.accept(token="unknown").fails(400, "auth.invitation_invalid")
    guest.accept(username="x").fails(400, "bad_request")


def test_the_checks_come_in_the_documented_order(rt, guest, clock):
    """Everything is wrong; one mistake after the other is put right."""
    body = {"username": "x", "password": "short"}
    other = make_user(rt, email="second@example.com")
    change_user(rt, other, pending_email="guest@example.com")
    configure(
        rt,
        auth_password_login_enabled=False,
        auth_local_email_blocklist=["example.com"],
        auth_local_email_allowlist=["elsewhere.example"],
    )
    remove_storage_route(rt)

    def refused(status, code, **options):
        guest.accept(**(body | options)).fails(status, code)

    refused(403, "auth.password_login_disabled", token="unknown")
    configure(rt, auth_password_login_enabled=True)
    refused(400, "auth.invitation_invalid", token="unknown")
    refused(400, "auth.email_blocked")
    configure(rt, auth_local_email_blocklist=[])
    refused(400, "auth.email_not_allowlisted")
    configure(rt, auth_local_email_allowlist=[])
    refused(400, "auth.email_exists")
    change_user(rt, other, pending_email=None)
    refused(400, "bad_request")
    body["password"] = GUEST["password"]
    refused(400, "validation.system_not_initialized")
    insist_open(rt, guest, accounts=2)


def test_an_expired_one_says_so_before_the_policy_is_asked(rt, guest, clock):
    configure(rt, auth_local_email_blocklist=["example.com"])
    clock.advance(days=3)
    guest.accept().fails(400, "auth.invitation_expired")


def test_without_storage_route_it_stays_open(rt, guest):
    remove_storage_route(rt)
    guest.accept(username="x").fails(400, "validation.system_not_initialized")
    insist_open(rt, guest)


def test_a_default_group_that_goes_meanwhile_makes_no_account_without_one(rt, guest, monkeypatch):
    look = setup.require_ready

    def look_and_lose_the_group(session):
        look(session)
        session.execute(sa.update(StoragePolicyGroup).values(is_enabled=False))

    monkeypatch.setattr(setup, "require_ready", look_and_lose_the_group)
    guest.accept().fails(400, "validation.system_not_initialized")
    insist_open(rt, guest)
