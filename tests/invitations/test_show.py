"""GET /auth/invitations/{token}."""

import logging

import pytest
import sqlalchemy as sa

from app.core.access import COMMAND_LINE
from app.invitations import service
from app.invitations.models import Invitation
from tests.support.factories import change_user, configure, make_user, moment, remove_storage_route


def stored(rt, guest):
    with rt.reading() as session:
        its_row = sa.select(Invitation.__table__).where(Invitation.id == guest.invitation_id)
        return session.execute(its_row).one()


def test_an_open_invitation_tells_address_and_end(guest, clock):
    """Without a session, and also by a link on another site."""
    answer = guest.client.get(guest.path(), headers={"Sec-Fetch-Site": "cross-site"})
    told = answer.ok()
    assert answer.set_cookies == {}
    assert set(told) == {"email", "expires_at"}
    assert told["email"] == "guest@example.com"
    assert (moment(told["expires_at"]) - clock.now()).total_seconds() == 259_200


def test_looking_changes_nothing(rt, guest, clock):
    before = stored(rt, guest)
    clock.advance(hours=1)
    guest.look().ok()
    assert stored(rt, guest) == before


def test_the_token_is_trimmed(guest):
    guest.look(f"  {guest.token}\n").ok()


def test_an_unknown_token_is_invalid(guest):
    for token in ("x", " ", "\t\n", "%", "x" * 43, "é", "\x00", "' OR 1=1 --"):
        guest.look(token).fails(400, "auth.invitation_invalid")


def test_neither_the_stored_digest_nor_another_case_is_the_token(rt, guest):
    guest.look(guest.token.swapcase()).fails(400, "auth.invitation_invalid")
    guest.look(service.digest(guest.token)).fails(400, "auth.invitation_invalid")


def test_an_accepted_one_says_so(guest):
    guest.accept().ok(201)
    guest.look().fails(400, "auth.invitation_accepted")


def test_a_replaced_one_is_revoked(guest, invite):
    newer = invite("GUEST@example.com")
    guest.look().fails(400, "auth.invitation_revoked")
    newer.look().ok()


def test_the_last_moment_is_open_and_the_next_is_not(rt, invite, clock):
    guest = invite(ttl_seconds=100)
    clock.advance(seconds=99.9)
    guest.look().ok()
    clock.advance(seconds=0.1)
    assert stored(rt, guest).status == "pending"
    guest.look().fails(400, "auth.invitation_expired")
    row = stored(rt, guest)
    assert (row.status, row.updated_at) == ("expired", clock.now())
    guest.look().fails(400, "auth.invitation_expired")


@pytest.mark.parametrize("end", ["accepted", "revoked"])
def test_what_ended_before_does_not_expire(rt, guest, clock, end):
    if end == "accepted":
        guest.accept().ok(201)
    else:
        service.revoke(rt, COMMAND_LINE, str(guest.invitation_id))
    clock.advance(days=10)
    guest.look().fails(400, f"auth.invitation_{end}")


def test_no_switch_and_no_state_hides_it(rt, guest):
    configure(
        rt,
        auth_password_login_enabled=False,
        auth_allow_user_registration=False,
        auth_local_email_blocklist=["example.com"],
    )
    remove_storage_route(rt)
    guest.look().ok()


def test_it_tells_nothing_about_accounts(rt, guest):
    before = guest.look().ok()
    user = make_user(rt)
    change_user(rt, user, pending_email="guest@example.com")
    assert guest.look().ok() == before


# --- the log ---------------------------------------------------------------------------------


def test_no_request_leaves_the_token_in_the_log(guest, caplog):
    caplog.set_level(logging.DEBUG)
    requests = [
        ("GET", ""),
        ("HEAD", ""),
        ("OPTIONS", ""),
        ("POST", "/accept"),
        ("PUT", ""),
        ("GET", "/accept"),
        ("GET", "/"),
        ("POST", "/accept/"),
        ("POST", "/Accept"),
    ]
    for method, suffix in requests:
        guest.client.call(method, guest.path() + suffix, described=False)
    lines = [record.getMessage() for record in caplog.records if record.name == "gatehouse.access"]
    assert len(lines) == len(requests)
    assert all("/invitations/" in line for line in lines)
    assert all(guest.token not in repr(record.__dict__) for record in caplog.records)


def test_the_page_of_a_mail_leaves_no_token_in_the_log_where_no_frontend_serves_it(
    app, rt, guest, caplog
):
    configure(rt, pages_sections=[])
    caplog.set_level(logging.DEBUG)
    assert app.test_client().get(f"/invite/{guest.token}").status_code == 404
    assert "/invite/" in caplog.text
    assert guest.token not in caplog.text
