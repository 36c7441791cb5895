"""What administrators hear of each other: all of it, and what flips in one mail more."""

import re
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from app.core.access import COMMAND_LINE
from app.mail import notices
from app.mail.models import OutboxMail
from app.settings import changes
from tests.support.external import add_provider
from tests.support.factories import audit_rows, bearer_of, configure, make_user
from tests.support.mailbox import text_of
from tests.support.outbox import rows

PASSKEYS = "auth_passkey_login_enabled"
PASSWORDS = "auth_password_login_enabled"


@pytest.fixture
def other(rt):
    return make_user(rt, username="bea", role="admin")


@pytest.fixture
def boss(app, rt, admin):
    return bearer_of(rt, app, admin)


@pytest.fixture
def heard(mailbox, other):
    """Return the sentences that the other administrator was mailed since it was last called."""

    def read():
        found = []
        for message in mailbox.read():
            text = " ".join(text_of(message).split())
            assert message["Subject"] == "Gatehouse: security notice"
            assert "your account" not in text.lower()
            if message["To"] == other.email:
                found.append(re.search(r"and how\. (.+?) If you did this", text)[1])
        return found

    return read


def switch(client, *states, name=PASSKEYS):
    for is_on in states:
        client.put(f"/admin/config/{name}", {"value": "true" if is_on else "false"}).ok()


def test_switches_use_up_nothing_of_what_follows(boss, rt, other, heard, clock):
    third = make_user(rt, username="cora", role="admin")
    switch(boss, False, True, False, True, False)
    path = f"/admin/users/{third.id}"
    boss.put(f"{path}/password", {"password": "a new one of hers"}).ok()
    boss.put(f"{path}/email", {"email": "hers@example.com"}).ok()
    boss.patch(path, {"role": "user"}).ok()
    assert heard() == [
        "Signing in with a passkey was switched off by boss.",
        "A new password was set for the administrator cora by boss.",
        "The e-mail address of the administrator cora was changed by boss.",
        "The role of an administrator was taken away from cora by boss.",
    ]
    clock.advance(minutes=10, seconds=-1)
    assert heard() == []
    clock.advance(seconds=1)
    assert heard() == [
        "Signing in with a passkey was changed again within ten minutes: switched on by boss, then "
        "switched off by boss, then switched on by boss, then switched off by boss."
    ]
    clock.advance(days=1)
    assert heard() == []


def test_everything_is_told_with_who_did_it_to_whom(boss, rt, line, heard, user, other):
    body = {"username": "dora", "email": "d@example.com", "password": "a good long password"}
    boss.post("/admin/users", {**body, "role": "admin"}).ok(201)
    [made] = boss.get("/admin/users?keyword=dora").ok()["items"]
    boss.patch(f"/admin/users/{user.id}", {"role": "admin"}).ok()
    boss.patch(f"/admin/users/{made['id']}", {"status": "disabled"}).ok()
    line.json("users", "set-role", user.username, "user")
    line.json("config", "set", PASSKEYS, "false")
    on_the_command_line = "by somebody with the command line"
    assert heard() == [
        "The account dora was created as an administrator by boss.",
        f"The account {user.username} was made an administrator by boss.",
        "The administrator dora was disabled by boss.",
        f"The role of an administrator was taken away from {user.username} {on_the_command_line}.",
        f"Signing in with a passkey was switched off {on_the_command_line}.",
    ]


def test_who_is_an_administrator_no_more_is_told_in_the_same_words(boss, rt, other, mailbox):
    boss.patch(f"/admin/users/{other.id}", {"role": "user"}).ok()
    message = mailbox.only()
    assert message["To"] == other.email
    text = " ".join(text_of(message).split())
    assert "The role of an administrator was taken away from bea by boss." in text
    assert "your account" not in text


def test_each_way_to_sign_in_is_gathered_by_itself(boss, rt, admin, other, heard, clock):
    add_provider(rt)
    provider = "/admin/external-auth/providers/1"
    switch(boss, False, True)
    for is_on in (False, True, False):
        boss.patch(provider, {"enabled": is_on}).ok()
    bea = bearer_of(rt, boss.app, other)
    switch(bea, False)
    heard_at_once = heard()
    assert heard_at_once == [
        "Signing in with a passkey was switched off by boss.",
        "Signing in with Corporate was switched off by boss.",
    ]
    clock.advance(minutes=10)
    assert sorted(heard()) == [
        "Signing in with Corporate was changed again within ten minutes: switched on by boss, then "
        "switched off by boss.",
        "Signing in with a passkey was changed again within ten minutes: switched on by boss.",
    ]


def test_after_ten_minutes_it_begins_anew(boss, heard, clock):
    switch(boss, False)
    assert len(heard()) == 1
    clock.advance(minutes=10)
    switch(boss, True)
    assert heard() == ["Signing in with a passkey was switched on by boss."]


def test_what_a_clock_ahead_told_gathers_nothing(rt, heard, clock):
    clock.advance(days=2)
    configure(rt, **{PASSKEYS: False})
    assert len(heard()) == 1
    clock.advance(days=-2)
    configure(rt, **{PASSKEYS: True})
    assert heard() == [
        "Signing in with a passkey was switched on by somebody with the command line."
    ]


def test_a_hundred_switches_are_one_mail_of_bounded_length(rt, other, clock, heard):
    for number in range(101):
        configure(rt, **{PASSKEYS: number % 2 == 1})
    assert len(rows(rt)) == 2
    assert len(heard()) == 1
    clock.advance(minutes=10)
    [told] = heard()
    assert len(told) < notices.MAX_TOLD_LENGTH + 200
    assert told.endswith(
        ", then more of the same, and at last switched off by somebody with the command line."
    )


def test_what_was_gathered_with_a_lost_key_is_told_anew(rt, other, clock, heard, monkeypatch):
    configure(rt, **{PASSKEYS: False})
    configure(rt, **{PASSKEYS: True})
    with rt.transaction() as session:
        for row in rows(rt)[1:]:
            session.execute(
                sa.update(OutboxMail)
                .where(OutboxMail.id == row.id)
                .values(payload="v1:gone:AAAA:AAAA")
            )
    configure(rt, **{PASSKEYS: False})
    assert len(rows(rt)) == 3


@pytest.mark.both_databases
def test_switches_at_the_same_moment_are_one_mail_and_one_more(rt, heard, clock):
    configure(rt, **{PASSKEYS: True})  # as it is by default, so nobody is told
    with ThreadPoolExecutor(4) as pool:
        values = [{PASSKEYS: number % 2 == 1} for number in range(16)]
        list(pool.map(lambda one: changes.change(rt, COMMAND_LINE, one), values))
    switched = len(audit_rows(rt, "config_update")) - 1
    assert len(rows(rt)) == min(switched, 2)
    told = heard()
    clock.advance(minutes=10)
    told += heard()
    assert sum(sentence.count("switched") for sentence in told) == switched
