"""The mails that tell an account's owner what happened to its second factors."""

import pytest

from app.mfa.service import Notice
from app.users import service as users
from tests.support.authenticator import enable_totp
from tests.support.factories import configure
from tests.support.mailbox import html_of, text_of


@pytest.fixture
def told(mailbox, user):
    """Insist on exactly one new mail, to the owner; return its text on one line."""

    def read():
        message = mailbox.only()
        [address] = message["To"].addresses
        assert address.addr_spec == user.email
        assert message["Subject"] == "Gatehouse: security notice"
        assert user.username in text_of(message)
        return " ".join(text_of(message).split())

    return read


def test_the_owner_is_told_of_every_change(signed_in, clock, told):
    enabled = enable_totp(signed_in, clock)
    assert Notice.FACTOR_ADDED.value in told()
    path = "/auth/mfa/recovery-codes/regenerate"
    codes = signed_in.post(path, {"code": enabled.app.code()}).ok()
    text = told()
    assert Notice.RECOVERY_CODES_REGENERATED.value in text
    assert not any(code in text for code in codes)
    signed_in.delete(f"/auth/mfa/factors/{enabled.factor_id}", {"code": enabled.app.wait()}).ok()
    assert Notice.FACTOR_REMOVED.value in told()


def test_the_owner_is_told_of_a_used_recovery_code(rt, signed_in, user, enabled, mailbox, told):
    mailbox.read()
    configure(rt, auth_new_browser_notice=False)
    stranger = signed_in.stranger()
    token = stranger.login(user).ok()["flow_token"]
    code = enabled.recovery_codes[0]
    body = {"flow_token": token, "method": "recovery_code", "code": code}
    stranger.post("/auth/mfa/challenge/verify", body).ok()
    text = told()
    assert Notice.RECOVERY_CODE_USED.value in text
    assert code not in text


def test_what_is_refused_is_not_told(signed_in, enabled, mailbox):
    mailbox.read()
    path = "/auth/mfa/recovery-codes/regenerate"
    signed_in.post(path, {"code": enabled.app.wrong_code()}).fails(401, "auth.mfa_code_invalid")
    body = {"code": enabled.app.code()}
    signed_in.delete("/auth/mfa/factors/4711", body).fails(404, "not_found")
    assert mailbox.read() == []


@pytest.mark.parametrize("what", list(Notice))
def test_every_event_has_a_mail_of_its_own(rt, user, told, what):
    with rt.transaction() as session:
        users.notify_owner(rt, session, users.get(session, user.id), what.value)
    assert what.value in told()


def test_an_owner_is_told_however_often_it_happens(rt, user, mailbox):
    """A thief could else use up the notices first."""
    for _ in range(20):
        with rt.transaction() as session:
            users.notify_owner(rt, session, users.get(session, user.id), "Something happened.")
    assert len(mailbox.read()) == 20


def test_its_wording_can_be_replaced(rt, signed_in, clock, mailbox):
    configure(
        rt,
        mail_template_security_notice_subject="Hey {{username}}",
        mail_template_security_notice_html="<p>At {{site_name}}: {{event}}</p>",
    )
    enable_totp(signed_in, clock)
    message = mailbox.only()
    assert message["Subject"].startswith("Hey ")
    assert f"<p>At Gatehouse: {Notice.FACTOR_ADDED.value}</p>" in html_of(message)


def test_it_can_be_previewed(line):
    shown = line.json("mail", "preview", "security_notice")
    assert shown["unknown_placeholders"] == []
    assert "{{" not in shown["html"] + shown["text"]
