"""Addresses whose local part mail programs may take for something encoded, such as recipients."""

import json

import pytest

from app.external_auth.drivers import claims
from app.mail import dispatcher
from app.mail.models import OutboxMail
from app.settings import queries as settings_queries
from app.users.models import User
from tests.support.factories import change_user, count
from tests.support.outbox import queue

ADDRESSES = [
    "=?utf-8?q?x=40evil.test=3e?=a@example.com",
    "=?utf-8?q?=2ceve=40evil.test=2c?=@example.com",
    "=?utf-8?q?x=0d=0aBcc=3aeve=40evil.test?=@example.com",
    "=?utf-8?b?AA==?=@example.com",
]
ADDRESS = ADDRESSES[0]
PASSWORD = "a good long password"


@pytest.mark.parametrize("address", ADDRESSES)
def test_nobody_registers_with_one(api, rt, admin, address):
    body = {"username": "stranger", "email": address, "password": PASSWORD}
    api.post("/auth/register", body).fails(400, "bad_request")
    assert (count(rt, User), count(rt, OutboxMail)) == (1, 0)


DOORS = [
    ("post", "/auth/password/reset/request", {"email": ADDRESS}),
    ("post", "/auth/email/change", {"new_email": ADDRESS}),
    ("post", "/admin/users", {"username": "new", "email": ADDRESS, "password": PASSWORD}),
    ("put", "/admin/users/{}/email", {"email": ADDRESS}),
    ("post", "/admin/users/invitations", {"email": ADDRESS}),
    ("post", "/admin/config/mail/action", {"action": "send_test_email", "target_email": ADDRESS}),
    ("put", "/admin/config/mail_from_address", {"value": ADDRESS}),
    ("put", "/admin/config/auth_local_email_allowlist", {"value": [ADDRESS]}),
]


@pytest.mark.parametrize(("method", "path", "body"), DOORS, ids=[path for _, path, _ in DOORS])
def test_it_is_refused_wherever_an_address_is_typed(boss, rt, user, smtp, method, path, body):
    getattr(boss, method)(path.format(user.id), body).fails(400, "bad_request")
    dispatcher.drain(rt)
    assert smtp.received == []


def test_it_is_refused_by_the_command_line(line, rt, user, smtp, tmp_path):
    users = count(rt, User)
    line.refuses("bad_request", "users", "set-email", user.username, ADDRESS)
    line.refuses("bad_request", "mail", "test", ADDRESS)
    line.refuses("bad_request", "invitations", "create", ADDRESS)
    line.refuses("bad_request", "config", "set", "mail_from_address", ADDRESS)
    file = tmp_path / "accounts"
    file.write_text(json.dumps({"username": "new", "email": ADDRESS}))
    assert line("users", "import", str(file)).exit_code == 1
    assert smtp.received == []
    assert users == count(rt, User)


@pytest.mark.parametrize("address", [*ADDRESSES, "=?@example.com"])
def test_a_provider_that_claims_one_has_told_no_address(address):
    assert claims.email(address) is None
    assert claims.email("a=b?c@example.com") == "a=b?c@example.com"


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("name", ["recipient", "sender"])
def test_one_that_an_older_version_stored_is_one_mailbox(rt, mailbox, name, address):
    """And the mail has the headers that every mail has."""
    if name == "sender":
        with rt.transaction() as session:
            settings_queries.store(session, "mail_from_address", address, rt.clock.now(), None)
        rt.settings.expire()
    queue(rt, address)
    message = mailbox.only()
    [file] = rt.config.mail_dir.iterdir()
    headers = file.read_bytes().partition(b"\r\n\r\n")[0]
    assert b"=?" not in headers
    assert message.keys() == [
        *("From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted"),
        *("MIME-Version", "Content-Type"),
    ]
    [found] = message["To" if name == "recipient" else "From"].addresses
    assert f"{found.username}@{found.domain}" == address


def test_the_server_is_told_such_a_recipient_as_it_is(rt, smtp):
    queue(rt, ADDRESS)
    dispatcher.drain(rt)
    assert smtp.named == [f"TO:<{ADDRESS}>"]


def test_who_has_one_signs_in_with_it(rt, api, user):
    change_user(rt, user, email=ADDRESS)
    body = {"identifier": ADDRESS.upper(), "password": user.password}
    api.post("/auth/login", body).ok()
