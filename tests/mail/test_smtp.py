"""Sending to real SMTP servers, proper ones and others."""

import base64
import hmac
import logging
import os
import subprocess
import sys
import textwrap
import time

import pytest

from app.mail import dispatcher, mailer, operators
from app.mail.errors import MailDeliveryFailed
from app.mail.mailer import Mailer, Timeouts
from app.mail.models import MailStatus
from tests.support.factories import configure
from tests.support.mailbox import html_of, text_of
from tests.support.outbox import TOKEN, attempt, queue, refusal, rows, use_smtp
from tests.support.servers import ROOT
from tests.support.smtp import HOST, Authority, RecordingSmtpServer, ScriptedSmtpServer, converse


def test_a_mail_arrives_whole(rt, smtp, clock):
    row = attempt(rt)
    [mail] = smtp.received
    assert (mail.sender, mail.recipients) == ("files@files.example", ["ada@example.com"])
    message = mail.message
    assert str(message["From"]) == "Gatehouse <files@files.example>"
    assert str(message["To"]) == "ada@example.com"
    assert message["Auto-Submitted"] == "auto-generated"
    assert message["Date"].datetime == clock.now()
    assert str(message["Message-ID"]).endswith("@files.example>")
    assert message.get_content_type() == "multipart/alternative"
    for part in (text_of(message), html_of(message)):
        assert f"/reset-password?token={TOKEN}" in part
    assert (row.status, row.attempts, row.last_error) == ("sent", 1, None)


@pytest.mark.parametrize("local", ["taro..yamada", ".taro", "taro.", ".", "a'--{|}~"])
@pytest.mark.parametrize("domain", ["docomo.ne.jp", f"{'long-' * 12}name.example.com"])
def test_a_local_part_with_dots_anywhere_is_quoted(rt, smtp, local, domain):
    queue(rt, f"{local}@{domain}")
    dispatcher.drain(rt)
    [mail] = smtp.received
    quoted = f"{local}@{domain}" if "'" in local else f'"{local}"@{domain}'
    assert smtp.named == [f"TO:<{quoted}>"]
    assert f"To: {quoted}".encode() in mail.raw.replace(b"\r\n ", b" ")
    [address] = mail.message["To"].addresses
    assert (address.username, address.domain) == (local, domain)


def test_a_mail_of_the_outbox_is_no_file(rt, smtp):
    attempt(rt)
    assert not rt.config.mail_dir.exists()


def test_mails_that_are_due_share_a_connection(rt, smtp):
    for number in range(5):
        queue(rt, f"user{number}@example.com")
    dispatcher.drain(rt)
    assert len(smtp.received) == 5
    assert smtp.connections == 1


def test_a_server_that_hangs_up_after_each_mail_still_gets_all(rt):
    with RecordingSmtpServer(mails_per_connection=1) as sink:
        use_smtp(rt, sink.port)
        for number in range(4):
            queue(rt, f"user{number}@example.com")
        dispatcher.drain(rt)
        assert sorted(sink.recipients) == [f"user{n}@example.com" for n in range(4)]
    assert {(row.status, row.attempts) for row in rows(rt)} == {("sent", 1)}


def test_a_connection_is_not_used_for_more_mails_than_servers_take(rt, smtp, monkeypatch):
    monkeypatch.setattr(mailer, "MAX_MAILS_PER_CONNECTION", 2)
    for _ in range(5):
        queue(rt)
    dispatcher.drain(rt)
    assert [mail.connection for mail in smtp.received] == [1, 1, 2, 2, 3]


def test_a_changed_server_is_used_from_the_next_mail_on(rt, smtp):
    with RecordingSmtpServer() as other:
        smtp.on_mail = lambda _mail: use_smtp(rt, other.port)
        queue(rt, "first@example.com")
        queue(rt, "second@example.com")
        dispatcher.drain(rt)
        assert len(smtp.received) == len(other.received) == 1


# --- TLS and log-in ------------------------------------------------------------------------------


def test_starttls_with_a_valid_certificate(rt, authority):
    with RecordingSmtpServer(tls=authority.server()) as sink:
        use_smtp(rt, sink.port, tls=True)
        assert attempt(rt).status == "sent"
        assert [mail.is_encrypted for mail in sink.received] == [True]


def test_implicit_tls_on_its_port(rt, authority, monkeypatch):
    with RecordingSmtpServer(implicit_tls=authority.server()) as sink:
        monkeypatch.setattr(mailer, "IMPLICIT_TLS_PORT", sink.port)  # 465 may be taken
        use_smtp(rt, sink.port, tls=True)
        assert attempt(rt).status == "sent"
        assert [mail.is_encrypted for mail in sink.received] == [True]


def test_the_machines_own_authorities_are_trusted_unless_told_otherwise(authority, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.path))
    context = Mailer().tls
    assert len(context.get_ca_certs()) == 1
    assert context.check_hostname
    assert context.verify_mode.name == "CERT_REQUIRED"


@pytest.mark.parametrize("implicit", [False, True])
@pytest.mark.parametrize("wrong", ["authority", "name", "expired"])
def test_an_invalid_certificate_is_refused_before_anything_is_sent(
    rt, authority, tmp_path, monkeypatch, wrong, implicit
):
    context = {
        "authority": lambda: Authority(tmp_path).server(),
        "name": lambda: authority.server("elsewhere.example"),
        "expired": lambda: authority.server(expired=True),
    }[wrong]()
    options = {"implicit_tls" if implicit else "tls": context}
    with RecordingSmtpServer(**options, passwords={"files": "secret-1"}) as sink:
        if implicit:
            monkeypatch.setattr(mailer, "IMPLICIT_TLS_PORT", sink.port)
        use_smtp(rt, sink.port, tls=True, username="files", password="secret-1")
        assert "certificate is not valid" in refusal(rt)
        assert (sink.received, sink.logins) == ([], [])


def test_without_starttls_nothing_is_sent(rt):
    with RecordingSmtpServer(passwords={"files": "secret-1"}) as sink:
        use_smtp(rt, sink.port, tls=True, username="files", password="secret-1")
        assert "STARTTLS" in refusal(rt)
        assert (sink.received, sink.logins) == ([], [])


def test_a_plain_server_on_the_port_of_implicit_tls_is_refused(rt, monkeypatch):
    with RecordingSmtpServer() as sink:
        monkeypatch.setattr(mailer, "IMPLICIT_TLS_PORT", sink.port)
        use_smtp(rt, sink.port, tls=True)
        assert "TLS failed" in refusal(rt)
        assert sink.received == []


def test_log_in(rt, authority):
    with RecordingSmtpServer(tls=authority.server(), passwords={"files": "secret-1"}) as sink:
        use_smtp(rt, sink.port, tls=True, username="files", password="secret-1")
        assert attempt(rt).status == "sent"
        assert [mail.user for mail in sink.received] == ["files"]


def test_an_empty_user_name_means_no_log_in(rt, authority):
    with RecordingSmtpServer(tls=authority.server(), passwords={"files": "secret-1"}) as sink:
        use_smtp(rt, sink.port, tls=True, password="secret-1")
        assert "530" in refusal(rt)
        assert sink.logins == []


def test_a_wrong_password_is_named_and_not_repeated(rt, authority):
    with RecordingSmtpServer(tls=authority.server(), passwords={"files": "secret-1"}) as sink:
        use_smtp(rt, sink.port, tls=True, username="files", password="secret-2")
        reason = refusal(rt, "secret-2")
        assert reason.startswith("the server refused user name and password: 535")


def encoded(text):
    return base64.b64encode(text.encode()).decode()


def asks_to_log_in(ways, answer):
    """Return the behaviour of a server that offers these ways, and answers so to any of them."""

    def behave(client):
        client.sendall(b"220 hello\r\n")
        for line in client.makefile("rb"):
            if line.upper().startswith(b"EHLO"):
                client.sendall(f"250-hello\r\n250 AUTH {ways}\r\n".encode())
            else:
                client.sendall(f"{answer}\r\n".encode())

    return behave


@pytest.mark.parametrize(
    "told",
    [
        "secret-2 is wrong",
        f"unknown: {encoded('files')}",
        f"{encoded('secret-2')}: no",
        encoded("secret-2").rstrip("="),
        f"5.7.8 <{encoded(chr(0) + 'files' + chr(0) + 'secret-2')}>",
        f"5.7.8 {encoded('files 0123456789abcdef')}",
        f"PLAIN/{encoded('secret-2')}",
        f"LOGIN+{encoded(chr(0) + 'files' + chr(0) + 'secret-2')}",
        f"x{encoded('secret-2')[:8]}...",
    ],
)
def test_a_server_that_repeats_the_log_in_is_not_quoted(rt, told):
    with ScriptedSmtpServer(asks_to_log_in("PLAIN LOGIN", f"535 {told}")) as server:
        use_smtp(rt, server.port, username="files", password="secret-2")
        assert refusal(rt, "secret-2") == "the server repeated the credentials in its refusal"


def test_a_server_may_name_the_user(rt):
    with RecordingSmtpServer(passwords={"files": "secret-1"}) as sink:
        use_smtp(rt, sink.port, username="files", password="secret-2")
        assert refusal(rt).endswith("535 5.7.8 Authentication credentials invalid")


@pytest.mark.parametrize("ways", [{"PLAIN", "LOGIN"}, {"PLAIN"}, {"LOGIN"}])
@pytest.mark.parametrize(
    ("username", "password"), [("files", "Grüße€"), ("jürgen", "secret-1"), ("ユーザー", "пароль🗝")]
)
def test_user_name_and_password_are_sent_in_utf_8(rt, username, password, ways):
    with RecordingSmtpServer(passwords={username: password}, ways=ways) as sink:
        use_smtp(rt, sink.port, username=username, password=password)
        assert attempt(rt).status == "sent"
        assert sink.logins == [(username, password)]


def test_a_challenge_is_answered_in_utf_8(rt):
    challenge, told = b"<1896.697170952@postoffice.example.net>", []

    def behave(client):
        client.sendall(b"220 hello\r\n")
        for line in client.makefile("rb"):
            if line.upper().startswith(b"EHLO"):
                client.sendall(b"250-hello\r\n250 AUTH CRAM-MD5\r\n")
            elif line.upper().startswith(b"AUTH"):
                client.sendall(b"334 %s\r\n" % base64.b64encode(challenge))
            else:
                told.append(base64.b64decode(line))
                client.sendall(b"535 no\r\n")

    with ScriptedSmtpServer(behave) as server:
        use_smtp(rt, server.port, username="jürgen", password="Grüße€")
        assert refusal(rt, "Grüße€").startswith("the server refused user name and password: 535")
    signature = hmac.new("Grüße€".encode(), challenge, "md5").hexdigest()
    assert told[0] == f"jürgen {signature}".encode()


@pytest.mark.parametrize("ways", ["GSSAPI", ""])
def test_a_server_that_offers_no_way_to_carry_them_is_named(rt, ways):
    with ScriptedSmtpServer(asks_to_log_in(ways, "535 no")) as server:
        use_smtp(rt, server.port, username="files", password="Grüße€")
        assert refusal(rt, "Grüße€") == "the server offers no way to log in"


def test_a_wrong_password_outside_ascii_is_refused_by_the_server(rt):
    with RecordingSmtpServer(passwords={"files": "x"}) as sink:
        use_smtp(rt, sink.port, username="files", password="schön")
        reason = refusal(rt, "schön")
        assert reason.startswith("the server refused user name and password: 535")
        assert sink.logins == 2 * [("files", "schön")]  # by PLAIN, and by LOGIN


def test_a_host_that_no_name_server_can_be_asked_for_is_named_by_its_setting(rt, smtp):
    configure(rt, mail_smtp_host=f"{'ü' * 64}.example")
    assert refusal(rt) == "mail_smtp_host cannot be the name of a host"


# --- the name that it gives itself ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({}, "files.example"),  # the sender's domain
        ({"public_site_url": ["https://site.example:8443", "https://b.example"]}, "site.example"),
        ({"public_site_url": ["http://localhost:8000"]}, "files.example"),
        ({"public_site_url": ["http://nas"]}, "files.example"),
        ({"public_site_url": ["https://my_nas.example"]}, "files.example"),
        ({"public_site_url": ["https://xn--bcher-kva.example"]}, "xn--bcher-kva.example"),
        ({"public_site_url": ["http://192.0.2.7:8000"]}, "[192.0.2.7]"),
        ({"public_site_url": ["http://[2001:db8::7]:8000"]}, "[IPv6:2001:db8::7]"),
        ({"mail_helo_name": "Mail.Example", "public_site_url": ["https://a.b"]}, "mail.example"),
        ({"mail_helo_name": "nas"}, "nas"),
        ({"mail_helo_name": "192.0.2.8"}, "[192.0.2.8]"),
        ({"mail_helo_name": "[IPv6:2001:DB8::8]"}, "[IPv6:2001:db8::8]"),
    ],
)
def test_the_service_gives_itself_a_name_that_others_can_look_up(rt, smtp, settings, name):
    configure(rt, **settings)
    assert attempt(rt).status == "sent"
    assert smtp.greeted_by == [name]


@pytest.mark.parametrize(
    "name",
    [
        "a b",
        "a\r\nb",
        "bücher.example",
        "a-.example",
        "a..b",
        "[192.0.2]",
        "a.example:25",
        "x" * 64,
    ],
    ids=ascii,
)
def test_what_no_host_is_called_is_refused(line, name):
    line.refuses("bad_request", "config", "set", "mail_helo_name", name)


def greets(*replies, then=b""):
    """Return the behaviour of a server that answers the connection and the first commands so."""

    def behave(client):
        reader = client.makefile("rb")
        for reply in replies:
            client.sendall(reply + b"\r\n")
            if reply.startswith(b"421"):
                return
            reader.readline()
        client.sendall(then)

    return behave


@pytest.mark.parametrize(
    ("replies", "reason"),
    [
        ([b"421 4.3.2 busy"], "the server refused the connection: 421 4.3.2 busy"),
        ([b"554 5.3.2 go away"], "the server refused the connection: 554 5.3.2 go away"),
        (
            [b"220 hello", b"421 4.7.0 too many from you"],
            "the server refused the name site.example (EHLO): 421 4.7.0 too many from you",
        ),
        (
            [b"220 hello", b"550 5.7.1 not by that name"],
            "the server refused the name site.example (EHLO): 550 5.7.1 not by that name",
        ),
        (
            [b"220 hello", b"502 what?", b"504 5.5.2 not a full name"],
            "the server refused the name site.example (EHLO): 504 5.5.2 not a full name",
        ),
    ],
)
def test_what_the_server_says_to_the_name_is_told(rt, replies, reason):
    configure(rt, public_site_url=["https://site.example"])
    with ScriptedSmtpServer(greets(*replies)) as server:
        use_smtp(rt, server.port)
        assert refusal(rt) == reason
        assert server.connections == 1


def test_whoever_examines_the_server_hears_what_it_says_to_the_name(rt):
    with ScriptedSmtpServer(greets(b"220 hello", b"550 5.7.1 not by that name")) as server:
        use_smtp(rt, server.port)
        with pytest.raises(MailDeliveryFailed, match=r"\(EHLO\): 550 5\.7\.1 not"):
            operators.reach_server(rt)


def test_a_server_that_does_not_know_ehlo_is_greeted_as_of_old(rt):
    def behave(client):
        reader = client.makefile("rb")
        for answer in (b"220 hi", b"502 what?", b"250 hi", b"250 OK", b"250 OK", b"354 go on"):
            client.sendall(answer + b"\r\n")
            asked.append(reader.readline().split()[0])
        while reader.readline() != b".\r\n":
            pass
        client.sendall(b"250 OK\r\n")

    asked = []
    with ScriptedSmtpServer(behave) as server:
        use_smtp(rt, server.port)
        assert attempt(rt).status == "sent"
    assert asked[:5] == [b"ehlo", b"helo", b"mail", b"rcpt", b"data"]


@pytest.mark.parametrize("settings", [{"tls": True}, {"username": "files", "password": "x-1"}])
def test_a_server_that_lacks_something_for_not_knowing_ehlo_is_quoted(rt, settings):
    with ScriptedSmtpServer(greets(b"220 hi", b"502 5.5.2 what?", b"250 hi")) as server:
        use_smtp(rt, server.port, **settings)
        assert refusal(rt, "x-1").endswith(" (it answered EHLO: 502 5.5.2 what?)")


@pytest.mark.parametrize("answer", [b"421 4.7.0 too many failures", b"535 5.7.8 no"])
def test_what_the_server_says_to_a_log_in_before_it_hangs_up_is_told(rt, answer):
    """It offers two ways, and smtplib would try the second one on a closed connection."""

    def behave(client):
        converse(client, until=b"EHLO")
        client.sendall(b"250-hello\r\n250 AUTH PLAIN LOGIN\r\n")
        client.recv(1000)
        client.sendall(answer + b"\r\n")

    with ScriptedSmtpServer(behave) as server:
        use_smtp(rt, server.port, username="files", password="secret-2")
        assert refusal(rt, "secret-2").endswith(f": {answer.decode()}")


# --- refusals ------------------------------------------------------------------------------------


def test_a_recipient_refused_for_good_is_not_tried_again(rt, smtp):
    smtp.refusals["ada@example.com"] = "550 5.1.1 no such user"
    row = attempt(rt)
    assert (row.status, row.attempts, row.payload) == ("failed", 1, None)
    assert row.last_error == "the server refused the recipient: 550 5.1.1 no such user"


def test_one_refused_recipient_does_not_hold_up_the_others(rt, smtp):
    smtp.refusals["ada@example.com"] = "450 4.2.1 try later"
    for name in ("ada", "bob", "eve"):
        queue(rt, f"{name}@example.com")
    dispatcher.drain(rt)
    assert sorted(smtp.recipients) == ["bob@example.com", "eve@example.com"]
    assert smtp.connections == 1


def test_one_mail_refused_at_data_does_not_hold_up_the_others(rt, smtp, clock):
    """As by Postfix's smtpd_data_restrictions; it then goes on with that mail's transaction."""
    smtp.data_refusals["ada@example.com"] = "450 4.7.1 try later"
    for name in ("ada", "bob", "eve"):
        queue(rt, f"{name}@example.com")
        clock.advance(seconds=1)
    assert dispatcher.drain(rt).server_error is None
    assert smtp.recipients == ["bob@example.com", "eve@example.com"]
    assert smtp.connections == 1


@pytest.mark.parametrize("answer", ["451 4.3.0 busy", "554 5.7.1 refused"])
def test_refused_content_is_tried_again_and_not_quoted(rt, smtp, answer):
    smtp.data_answers = [f"{answer}: {TOKEN}"]
    assert refusal(rt) == f"the server refused the mail: {answer[:9]}"
    assert smtp.received == []


@pytest.mark.parametrize("command", [b"MAIL", b"RCPT", b"DATA"])
def test_a_server_that_closes_for_now_is_asked_once_and_not_per_mail(rt, command):
    """421 may answer any command (RFC 5321, section 3.8), often to who sends too much."""

    def behave(client):
        converse(client, until=command)
        client.sendall(b"421 4.7.0 too much mail, come back later\r\n")

    with ScriptedSmtpServer(behave) as server:
        use_smtp(rt, server.port)
        for _ in range(3):
            queue(rt)
        dispatcher.drain(rt)
        assert server.connections == 1
    assert [row.last_error is None for row in rows(rt)].count(False) == 1
    assert {row.attempts for row in rows(rt)} == {0}
    assert {row.status for row in rows(rt)} == {"queued"}


def test_a_server_that_closes_for_now_after_the_content_is_asked_once_too(rt, smtp):
    smtp.data_answers = ["421 4.7.0 too much mail, come back later"]
    for _ in range(3):
        queue(rt)
    assert dispatcher.drain(rt).server_error == "the server refused the mail: 421 4.7.0"
    assert [row.last_error is None for row in rows(rt)].count(False) == 1
    assert {row.attempts for row in rows(rt)} == {0}
    assert smtp.received == []


@pytest.mark.parametrize("answer", ["421 4.3.0 not for this one", ""])
def test_a_recipient_at_whom_the_server_always_fails_holds_up_nobody(rt, smtp, clock, answer):
    smtp.refusals["bad@example.com"] = answer
    for name in ("bad", "bad", "first", "second"):
        queue(rt, f"{name}@example.com")
        clock.advance(seconds=1)
    dispatcher.drain(rt)
    assert smtp.recipients == ["first@example.com", "second@example.com"]
    bad = [row for row in rows(rt) if row.recipient == "bad@example.com"]
    assert [(row.status, row.attempts) for row in bad] == [("queued", 0)] * 2


def test_of_many_such_recipients_each_look_tries_few_and_all_the_others(rt, smtp, clock):
    # The first look tries each, as the server serves somebody in between.
    for number in range(20):
        smtp.refusals[f"bad{number}@example.com"] = "421 4.3.0 not for this one"
        # Which of two goes first that are due at the same moment, nobody says.
        for name in ("bad", "good"):
            queue(rt, f"{name}{number}@example.com")
            clock.advance(seconds=1)
    dispatcher.drain(rt)
    assert smtp.recipients == [f"good{number}@example.com" for number in range(20)]
    clock.advance(minutes=5)
    queue(rt, "last@example.com")
    connections = smtp.connections
    drained = dispatcher.drain(rt)
    assert smtp.recipients[20:] == ["last@example.com"]
    assert smtp.connections - connections == 4
    assert drained.counts == {MailStatus.SENT: 1, MailStatus.QUEUED: 3}
    assert drained.server_error.endswith("421 4.3.0 not for this one")


def test_a_server_that_fails_at_every_recipient_is_asked_twice_and_not_per_mail(rt):
    def behave(client):
        converse(client, until=b"RCPT")
        client.sendall(b"421 4.7.0 too much mail, come back later\r\n")

    with ScriptedSmtpServer(behave) as server:
        use_smtp(rt, server.port)
        for number in range(5):
            queue(rt, f"user{number}@example.com")
        assert dispatcher.drain(rt).server_error
        assert server.connections == 2


@pytest.mark.parametrize("challenge", ["a", "w7w="])
def test_a_challenge_that_cannot_be_read_is_the_servers_fault(rt, challenge):
    with ScriptedSmtpServer(asks_to_log_in("CRAM-MD5", f"334 {challenge}")) as server:
        use_smtp(rt, server.port, username="files", password="secret-2")
        queue(rt)
        queue(rt)
        assert dispatcher.drain(rt).server_error
    assert [row.last_error is None for row in rows(rt)].count(False) == 1
    assert {row.attempts for row in rows(rt)} == {0}


@pytest.mark.parametrize("answer", [b"421 4.3.2 busy\r\n", b"554 go away\r\n"])
def test_a_server_that_wants_nobody_is_asked_once_and_not_per_mail(rt, answer):
    with ScriptedSmtpServer(lambda client: client.sendall(answer)) as server:
        use_smtp(rt, server.port)
        for _ in range(3):
            queue(rt)
        dispatcher.drain(rt)
        assert server.connections == 1
    assert [row.last_error is None for row in rows(rt)].count(False) == 1
    assert {row.attempts for row in rows(rt)} == {0}


def test_a_server_that_is_not_there(rt):
    with ScriptedSmtpServer(lambda _client: None) as server:
        port = server.port
    use_smtp(rt, port)
    assert "cannot be reached" in refusal(rt)


def test_a_host_that_does_not_exist(rt):
    use_smtp(rt, 25)
    configure(rt, mail_smtp_host="nowhere.invalid")
    assert "cannot be reached" in refusal(rt)


# --- servers that misbehave ----------------------------------------------------------------------


def say_nothing(client):
    """Take bytes, and answer none."""
    client.recv(1)


def swallow(client):
    """Take the connection, and no bytes."""
    client.sendall(b"220 hello\r\n")


def leave_data_unanswered(client):
    """Take sender and recipient, and never ask for the content."""
    converse(client, until=b"DATA")


@pytest.mark.parametrize("behave", [say_nothing, swallow, leave_data_unanswered])
def test_a_server_that_hangs_is_not_waited_for(rt, behave):
    rt.mailer.timeouts = Timeouts(answer=0.2, attempt=30)
    with ScriptedSmtpServer(behave, hangs=True) as server:
        use_smtp(rt, server.port)
        # And not that the attempt took too long, which it would without an end to this wait.
        assert refusal(rt) == "the server did not answer in time"


def test_a_server_that_looks_at_the_content_for_long_gets_one_copy(rt, sink):
    rt.mailer.timeouts = Timeouts(answer=3, attempt=60)
    sink.on_mail = lambda _mail: time.sleep(3.3)
    use_smtp(rt, sink.port)
    assert attempt(rt).status == "sent"
    dispatcher.drain(rt)
    assert len(sink.received) == 1


def test_a_server_that_hangs_up_instead_of_taking_the_content_has_no_attempt(rt):
    """It cannot have what was never sent, so this is an outage like any other."""
    with ScriptedSmtpServer(leave_data_unanswered) as server:
        use_smtp(rt, server.port)
        assert refusal(rt) == "the server hung up"


def test_a_server_that_drops_the_connection_while_the_content_travels(rt):
    def behave(client):
        converse(client, until=b"DATA")
        client.sendall(b"354 go on\r\n")
        client.recv(100)

    with ScriptedSmtpServer(behave) as server:
        use_smtp(rt, server.port)
        refusal(rt, attempts=1)
        # Whether it has the mail is not known, so it is not tried again at once.
        assert server.connections == 1


def test_nothing_of_a_mail_is_logged_where_smtp_is_set(rt, smtp, caplog):
    caplog.set_level(logging.DEBUG)
    smtp.data_answers = [f"554 5.7.1 {TOKEN}"]
    attempt(rt)
    of_the_sink = "mail.log"
    logged = [repr(record.__dict__) for record in caplog.records if record.name != of_the_sink]
    assert any("ada@example.com" in line for line in logged)
    assert not any(TOKEN in line for line in logged)


def test_the_server_is_asked_by_its_name(rt, authority):
    """An address instead of the certificate's name is another server."""
    assert HOST == "localhost"
    with RecordingSmtpServer(tls=authority.server()) as sink:
        use_smtp(rt, sink.port, tls=True)
        configure(rt, mail_smtp_host="127.0.0.1")
        assert "certificate is not valid" in refusal(rt)


# --- in a serving process ------------------------------------------------------------------------

IN_A_SERVING_PROCESS = """
    from gevent import monkey
    monkey.patch_all()
    import itertools, os, socket, ssl, sys, time
    from datetime import UTC, datetime
    import flask, gevent
    from app.mail import mailer
    from app.core.email_address import Mailbox
    from app.mail.mailer import Undeliverable

    certificate, authority = sys.argv[1:]
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate)
    mailer.IMPLICIT_TLS_PORT = 0

    def drip(connection, piece=b"2"):
        while True:
            connection.sendall(piece)
            gevent.sleep(0.05)

    def drip_lines(connection):
        drip(connection, b"220-hello\\r\\n")

    def flood(connection):
        while True:
            connection.sendall(b"220-hello\\r\\n" * 100)
            gevent.sleep(0.001)

    def converse(connection, last):
        connection.sendall(b"220 hello\\r\\n")
        for line in connection.makefile("rb"):
            if line.upper().startswith(last):
                return
            connection.sendall(b"250 fine\\r\\n")

    def drip_the_last_answer(connection):
        converse(connection, b"DATA")
        connection.sendall(b"354 go on\\r\\n")
        drip(connection)

    def drip_under_tls(connection):
        connection.sendall(b"220 hello\\r\\n")
        connection.recv(1000)
        connection.sendall(b"250-hello\\r\\n250 STARTTLS\\r\\n")
        connection.recv(1000)
        connection.sendall(b"220 go on\\r\\n")
        drip(tls.wrap_socket(connection, server_side=True))

    def drip_the_handshake(connection):
        connection.sendall(b"220 hello\\r\\n")
        connection.recv(1000)
        connection.sendall(b"250-hello\\r\\n250 STARTTLS\\r\\n")
        connection.recv(1000)
        connection.sendall(b"220 go on\\r\\n")
        connection.sendall(b"\\x16\\x03\\x03\\x3f\\xff")
        drip(connection)

    def serve(listener, behave):
        connection, _ = listener.accept()
        try:
            behave(connection)
        except OSError:
            pass

    timeouts = mailer.Timeouts(answer=4, attempt=2)
    mailing = mailer.Mailer(tls=ssl.create_default_context(cafile=authority), timeouts=timeouts)
    mailing.context = flask.Flask("files").app_context

    def ask(behave, uses_tls):
        listener = socket.create_server(("127.0.0.1", 0))
        gevent.spawn(serve, listener, behave)
        server = mailer.SmtpServer("localhost", listener.getsockname()[1], uses_tls=uses_tls)
        letter = mailer.Letter(
            sender=Mailbox("a@example.com"),
            recipient=Mailbox("b@example.com"),
            subject="x", text="x", html="x", written_at=datetime.now(UTC),
        )
        connection, begin = mailer.SmtpConnection(mailing), time.monotonic()
        try:
            connection.send(server, letter)
        except Undeliverable as failure:
            connection.close()
            assert time.monotonic() - begin < 5
            return failure.reason, failure.is_server_failure, failure.may_have_arrived

    ticks = []
    def tick():
        while True:
            ticks.append(time.monotonic())
            gevent.sleep(0.01)

    gevent.spawn(tick)
    jobs = [
        gevent.spawn(ask, drip, False),
        gevent.spawn(ask, drip_lines, False),
        gevent.spawn(ask, flood, False),
        gevent.spawn(ask, drip_under_tls, True),
        gevent.spawn(ask, drip_the_handshake, True),
        gevent.spawn(ask, drip_the_last_answer, False),
    ]
    gevent.joinall(jobs)
    for job in jobs:
        print(*(job.value or ["nothing"]))
    print(max(b - a for a, b in zip(ticks, ticks[1:])) < 1)
    sys.stdout.flush()
    os._exit(0)
"""


def test_a_server_that_drips_or_floods_is_cut_off_and_holds_up_nobody(authority):
    """One that has the mail by then may have delivered it."""
    ran = subprocess.run(
        [
            sys.executable,
            "-c",
            textwrap.dedent(IN_A_SERVING_PROCESS),
            str(authority.pem()),
            str(authority.path),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    late = "the server took longer than 2 s True"
    assert ran.stdout.splitlines() == [*[f"{late} False"] * 5, f"{late} True", "True"], ran.stderr
