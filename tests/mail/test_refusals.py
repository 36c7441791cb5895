"""What becomes of a mail when the server says no: each reply of RFC 5321, at each step."""

from datetime import timedelta

import pytest

from app.core.access import COMMAND_LINE
from app.mail import dispatcher, operators
from app.mail.models import MailStatus, OutboxMail
from app.mail.templates import Template
from tests.support.factories import audit_rows, count
from tests.support.outbox import only_row, queue, rows, use_smtp
from tests.support.smtp import ScriptedSmtpServer

CODES = (
    *(211, 214, 220, 221, 250, 251, 252, 354),
    *(421, 450, 451, 452, 455),
    *(500, 501, 502, 503, 504, 550, 551, 552, 553, 554, 555),
)
SUCCESSES = [code for code in CODES if code < 300]
# What ends an attempt otherwise than that the mail waits, by step and code.
OUTCOMES = {
    "connect": {220: "sent"},
    # A server that does not know EHLO is greeted by HELO.
    "ehlo": dict.fromkeys([*SUCCESSES, 354, 500, 502], "sent"),
    "starttls": {},  # but for 220, which begins TLS
    # After 503 it has been logged in.
    "auth": {235: "sent", 503: "sent"},
    "mail": dict.fromkeys(SUCCESSES, "sent"),
    "rcpt": dict.fromkeys(SUCCESSES, "sent") | dict.fromkeys([550, 551, 553], "failed"),
    "data": {354: "sent"},
    # No answer to the content is an attempt, and so is one that says nothing.
    "content": dict.fromkeys(SUCCESSES, "sent") | {354: "tried"},
}
USUAL = {
    "connect": "220 hello",
    "ehlo": "250-hello\r\n250-STARTTLS\r\n250 AUTH PLAIN",
    "starttls": "454 4.7.0 not now",
    "auth": "235 2.7.0 welcome",
    "data": "354 go on",
    "quit": "221 bye",
}


def answering(replies):
    """Return the behaviour of a server whose replies at some steps are these."""

    def behave(client):
        reader = client.makefile("rb")
        said = USUAL | replies
        client.sendall(f"{said['connect']}\r\n".encode())
        for line in reader:
            step = line[:4].decode().strip().lower().replace("star", "starttls")
            client.sendall(f"{said.get(step, '250 OK')}\r\n".encode())
            if step == "data" and said["data"].startswith("354"):
                while reader.readline() not in {b".\r\n", b""}:
                    pass
                client.sendall(f"{said.get('content', '250 OK')}\r\n".encode())

    return behave


def address(number):
    return f"user{number}@example.com"


@pytest.mark.parametrize("step", OUTCOMES)
def test_each_reply_at_each_step(rt, step):
    replies, expected, came_of = {}, {}, {}
    with ScriptedSmtpServer(answering(replies)) as server:
        settings = {"username": "files", "password": "secret-1"} if step == "auth" else {}
        use_smtp(rt, server.port, tls=step == "starttls", **settings)
        for code in [*CODES, *([235, 334, 432, 454, 530, 534, 535] if step == "auth" else [])]:
            if (step, code) in {("starttls", 220), ("auth", 334)}:
                continue  # the conversation goes on
            # An own mail for each, or one that waits would be refused alike.
            replies[step] = f"{code} said at {step}"
            queue(rt, address(code))
            dispatcher.drain(rt)
            [row] = [row for row in rows(rt) if row.recipient == address(code)]
            came_of[code] = (row.status, row.attempts, row.payload is None)
            expected[code] = {
                "sent": ("sent", 1, True),
                "failed": ("failed", 1, True),
                "tried": ("queued", 1, False),
                "waits": ("queued", 0, False),
            }[OUTCOMES[step].get(code, "waits")]
    assert came_of == expected


@pytest.mark.parametrize(
    ("step", "reply"),
    [
        ("content", "454 Throttling failure: Daily message quota exceeded."),
        ("content", "554 5.7.1 refused"),
        ("rcpt", "450 4.2.1 try later"),
        ("rcpt", "452 4.5.3 too many recipients"),
        ("rcpt", "554 5.7.1 relay denied"),
        ("mail", "550 5.1.8 not this sender"),
        ("data", "451 4.3.0 later"),
    ],
)
def test_a_mail_waits_for_three_days_with_growing_pauses(rt, clock, step, reply):
    pauses = []
    with ScriptedSmtpServer(answering({step: reply})) as server:
        use_smtp(rt, server.port)
        queue(rt, template=Template.PASSWORD_RESET_NOTICE, username="Ada")
        while clock.now() - only_row(rt).created_at < timedelta(days=3):
            dispatcher.drain(rt)
            row = only_row(rt)
            assert (row.status, row.attempts) == ("queued", 0)
            pauses.append((row.due_at - clock.now()).total_seconds())
            clock.advance(seconds=pauses[-1] if len(pauses) < 15 else 20_000)
        dispatcher.drain(rt)
    assert pauses[:5] == [5, 5, 10, 20, 40]
    assert pauses == sorted(pauses)
    assert pauses[-1] == (60 if step == "mail" else 3600)
    row = only_row(rt)
    assert (row.status, row.attempts, row.payload) == ("failed", 0, None)
    assert len(audit_rows(rt, "mail_delivery_failed")) == 1


# --- alike --------------------------------------------------------------------------------------


def refuse_all(rt, smtp, reply, *, names=("ada", "bob", "eve")):
    """Queue a mail to each of these, and have all refused; return the drain's result."""
    for name in names:
        smtp.refusals[f"{name}@example.com"] = reply.replace("*", f"<{name}@example.com>")
        queue(rt, f"{name}@example.com")
    return dispatcher.drain(rt)


@pytest.mark.parametrize(
    "reply",
    [
        "550 mailbox unavailable",
        "550 *: go away",
        "553 *: not here",
        "550 5.2.1 * disabled",
        "554 5.7.1 * relay denied",
        "450 4.7.1 *: not now",
    ],
)
def test_who_is_refused_like_the_one_before_is_not_at_fault(rt, smtp, clock, reply):
    drained = refuse_all(rt, smtp, reply)
    assert drained.counts == {MailStatus.QUEUED: 2}
    assert drained.server_error.startswith(f"the server refused the recipient: {reply[:3]}")
    assert {(row.status, row.attempts) for row in rows(rt)} == {("queued", 0)}
    smtp.refusals.clear()
    clock.advance(hours=1)
    dispatcher.drain(rt)
    assert sorted(smtp.recipients) == [f"{name}@example.com" for name in ("ada", "bob", "eve")]


@pytest.mark.parametrize("reply", ["550 5.1.1 no such user", "550 5.1.2 *: bad domain"])
def test_a_bad_address_is_one_however_many_there_are(rt, smtp, reply):
    drained = refuse_all(rt, smtp, reply)
    assert (drained.counts, drained.server_error) == ({MailStatus.FAILED: 3}, None)


def test_two_mails_to_one_recipient_are_not_two_recipients(rt, smtp):
    drained = refuse_all(rt, smtp, "550 no such user", names=("ada", "ada", "ada"))
    assert (drained.counts, drained.server_error) == ({MailStatus.FAILED: 3}, None)


def test_refusals_in_other_words_or_with_a_success_in_between_are_the_recipients(rt, smtp, clock):
    smtp.refusals = {"a@example.com": "550 no such user", "b@example.com": "550 mailbox disabled"}
    for name in "ab":
        queue(rt, f"{name}@example.com")
    assert dispatcher.drain(rt).counts == {MailStatus.FAILED: 2}
    queue(rt, "c@example.com")
    dispatcher.drain(rt)
    clock.advance(seconds=1)
    smtp.refusals["d@example.com"] = "550 no such user"
    queue(rt, "d@example.com")
    assert dispatcher.drain(rt).counts == {MailStatus.FAILED: 1}


@pytest.mark.both_databases
def test_where_mails_are_few_the_last_refusal_is_remembered(rt, smtp, clock):
    """Else a server that refuses everybody would end every mail, one an hour."""
    for name in ("ada", "bob", "eve"):
        refuse_all(rt, smtp, "550 *: go away", names=[name])
        clock.advance(hours=1)
    assert [row.status for row in rows(rt)] == ["failed", "queued", "queued"]
    smtp.refusals.pop("bob@example.com")
    dispatcher.drain(rt)
    assert smtp.recipients == ["bob@example.com"]
    clock.advance(hours=1)
    dispatcher.drain(rt)
    assert [row.status for row in rows(rt)] == ["failed", "sent", "failed"]


def test_a_refusal_that_everybody_gets_is_asked_twice_and_not_per_mail(rt, smtp):
    smtp.data_answers = ["454 Throttling failure: Maximum sending rate exceeded."] * 9
    for number in range(5):
        queue(rt, address(number))
    assert dispatcher.drain(rt).server_error == "the server refused the mail: 454"
    assert len(smtp.data_answers) == 7
    assert {(row.status, row.attempts) for row in rows(rt)} == {("queued", 0)}


# --- by hand --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "replies",
    [
        {"content": "354 what?"},  # it may have arrived
        {"content": "454 not now"},
        {"rcpt": "450 not now"},
        {"rcpt": "554 5.7.1 relay denied"},
        {"connect": "421 busy"},
    ],
)
@pytest.mark.parametrize("is_single", [False, True])
@pytest.mark.both_databases
def test_tries_by_hand_do_not_count_and_lose_nothing(rt, clock, replies, is_single):
    with ScriptedSmtpServer(answering(replies)) as server:
        use_smtp(rt, server.port)
        queue(rt, template=Template.PASSWORD_RESET_NOTICE, username="Ada")
        clock.advance(days=4)  # nobody looked for so long
        for _ in range(8):
            if is_single:
                operators.retry(rt, COMMAND_LINE, only_row(rt).id)
                dispatcher.drain(rt)
            else:
                operators.flush(rt, COMMAND_LINE)
            row = only_row(rt)
            assert (row.status, row.attempts, row.is_hurried) == ("queued", 0, False)
            assert row.due_at > clock.now()


def test_a_try_by_hand_ends_what_is_refused_for_good(rt, smtp):
    smtp.refusals["ada@example.com"] = "550 5.1.1 no such user"
    queue(rt)
    assert operators.flush(rt, COMMAND_LINE).failed == 1
    assert count(rt, OutboxMail, OutboxMail.status == "failed") == 1


def test_whoever_dies_over_a_try_by_hand_has_used_one_up(rt, smtp, clock, monkeypatch):
    def die(*_):
        raise KeyboardInterrupt

    queue(rt)
    for attempts in (0, 1):
        with monkeypatch.context() as patch:
            patch.setattr(dispatcher, "_settle", die)
            with pytest.raises(KeyboardInterrupt):
                operators.flush(rt, COMMAND_LINE)
        row = only_row(rt)
        assert (row.status, row.attempts) == ("sending", attempts)
        clock.advance(minutes=1)
