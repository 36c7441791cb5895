"""POST /auth/lock."""

import pytest

from tests.support.authenticator import enable_totp
from tests.support.external import add_provider, link
from tests.support.factories import audit_rows, bearer_of, column_of, make_user
from tests.support.mailbox import text_of

PATH = "/auth/lock"
CONFIRM = "/auth/password/reset/confirm"


@pytest.mark.both_databases
def test_every_session_ends_and_the_mailed_link_opens_the_account_again(
    signed_in, user, rt, mailbox
):
    intruder = signed_in.stranger()
    intruder.login(user).ok()
    intruder.post("/auth/email/change", {"new_email": "evil@example.com"}).ok()
    planted = mailbox.token(next(m for m in mailbox.read() if m["To"] == "evil@example.com"))
    held = signed_in.bearer()
    assert signed_in.post(PATH).ok() is None
    assert signed_in.cookies == {}
    for client in (held, intruder):
        client.me().fails(401, "auth.token_invalid")
    answer = signed_in.get(f"/auth/contact-verification/confirm?token={planted}")
    assert "contact_verification=invalid" in answer.headers["Location"]
    mails = {mail["Subject"]: mail for mail in mailbox.read()}
    notice = next(m for m in mails.values() if "signed out everywhere" in text_of(m))
    assert notice["To"] == user.email
    reset = next(m for m in mails.values() if m is not notice)
    body = {"token": mailbox.token(reset), "new_password": "another good password"}
    signed_in.post(CONFIRM, body).ok()
    assert signed_in.login(user, "another good password").ok()["status"] == "authenticated"
    [row] = audit_rows(rt, "user_lock_account")
    assert (row.user_id, row.details) == (user.id, '{"removed": 2}')


def test_the_old_password_opens_nothing_but_its_change(signed_in, user):
    signed_in.post(PATH).ok()
    assert signed_in.login(user).ok()["status"] == "password_change_required"


def test_a_sign_in_that_waits_for_its_code_is_void(signed_in, user, clock):
    totp = enable_totp(signed_in, clock)
    other = signed_in.stranger()
    token = other.login(user).ok()["flow_token"]
    signed_in.post(PATH).ok()
    body = {"flow_token": token, "method": "totp", "code": totp.app.wait()}
    other.post("/auth/mfa/challenge/verify", body).fails(401, "auth.mfa_flow_invalid")


def test_an_account_without_a_password_need_not_change_it(rt, app, user, mailbox):
    outsider = make_user(rt, password=None)
    link(rt, outsider, add_provider(rt))
    client = bearer_of(rt, app, outsider)
    client.post(PATH).ok()
    client.me().fails(401, "auth.token_invalid")
    assert column_of(rt, outsider, "must_change_password") is False
    assert "signed out everywhere" in text_of(mailbox.only())
