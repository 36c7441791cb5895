"""`flask mail`."""

import json
from datetime import timedelta

import pytest

from app.external_auth.sign_in import pending
from app.mail import dispatcher, previews
from app.mail.templates import Template
from app.settings import mail_keys
from tests.support.factories import audit_rows, configure
from tests.support.outbox import TOKEN, only_row, queue, rows, use_smtp
from tests.support.smtp import ScriptedSmtpServer

# --- test ----------------------------------------------------------------------------------------


def test_a_test_mail_is_sent_at_once(rt, line, smtp):
    assert line.json("mail", "test", " Ada@Example.com ") == {"sent_to": "ada@example.com"}
    [mail] = smtp.received
    assert mail.recipients == ["ada@example.com"]
    assert mail.message["Subject"] == "Gatehouse: test mail"
    assert len(audit_rows(rt, "mail_send")) == 1
    assert line("mail", "test", "ada@example.com").text == (
        "the SMTP server accepted a mail to ada@example.com"
    )


def test_a_test_without_a_server_is_refused(line):
    assert "mail_smtp_host" in line.refuses("mail.not_configured", "mail", "test", "a@example.com")


def test_a_test_that_fails_tells_why(rt, line, smtp):
    smtp.refusals["ada@example.com"] = "550 5.1.1 no such user"
    expected = (
        "The mail could not be sent: the server refused the recipient: 550 5.1.1 no such user."
    )
    assert line.refuses("mail.delivery_failed", "mail", "test", "ada@example.com") == expected
    assert line("mail", "test", "ada@example.com").complains() == f"Error: {expected}"


@pytest.mark.parametrize(
    ("tls", "answer", "told"),
    [
        (
            True,
            None,
            "the server offers no STARTTLS; to send to it unencrypted, set mail_security=false.",
        ),
        (False, "550 no such user.", "the server refused the recipient: 550 no such user."),
    ],
)
def test_a_test_that_fails_tells_why_in_one_sentence(rt, line, sink, tls, answer, told):
    use_smtp(rt, sink.port, tls=tls)
    sink.refusals["ada@example.com"] = answer
    expected = f"The mail could not be sent: {told}"
    assert line.refuses("mail.delivery_failed", "mail", "test", "ada@example.com") == expected


def test_a_test_wants_an_address(line, smtp):
    line.refuses("bad_request", "mail", "test", "nobody")
    assert smtp.received == []


# --- outbox --------------------------------------------------------------------------------------


def test_the_outbox_lists_mails_and_nothing_they_say(rt, line, smtp, clock):
    smtp.refusals["bad@example.com"] = "450 4.2.0 not now"
    queue(rt, "bad@example.com")
    queue(rt, "good@example.com", Template.PASSWORD_RESET_NOTICE, username="Ada")
    dispatcher.drain(rt)
    clock.advance(seconds=1)
    queue(rt, "new@example.com")
    ran = line("mail", "outbox", "--json")
    assert TOKEN not in ran.stdout
    [new, *others] = ran.json
    [bad, good] = sorted(others, key=lambda entry: entry["recipient"])
    assert new["recipient"] == "new@example.com"
    assert good == {
        "id": good["id"],
        "template": "password_reset_notice",
        "recipient": "good@example.com",
        "status": "sent",
        "attempts": 1,
        "last_error": None,
        "created_at": "2026-03-02T09:30:00Z",
        "due_at": None,
        "finished_at": "2026-03-02T09:30:00Z",
    }
    assert (bad["status"], bad["attempts"], bad["finished_at"]) == ("queued", 0, None)
    assert bad["due_at"] == "2026-03-02T09:30:05Z"
    assert bad["last_error"] == "the server refused the recipient: 450 4.2.0 not now"


def test_the_outbox_can_be_narrowed(rt, line, mailbox, clock):
    queue(rt, "first@example.com")
    mailbox.read()
    clock.advance(seconds=1)
    queue(rt, "second@example.com")
    assert [m["recipient"] for m in line.json("mail", "outbox", "--limit", "1")] == [
        "second@example.com"
    ]
    assert [m["recipient"] for m in line.json("mail", "outbox", "--status", "sent")] == [
        "first@example.com"
    ]
    assert line.json("mail", "outbox", "--status", "failed") == []
    assert line("mail", "outbox", "--status", "gone").exit_code == 2
    assert line("mail", "outbox", "--limit", "0").exit_code == 2


def test_the_outbox_in_words(rt, line):
    assert line("mail", "outbox").text == ""
    queue(rt)
    [titles, row] = line("mail", "outbox").text.splitlines()
    assert " ".join(titles.split()) == ("CREATED TEMPLATE RECIPIENT STATUS ATTEMPTS DUE LAST ERROR")
    assert row.split()[1:4] == ["password_reset", "ada@example.com", "queued"]


def test_what_became_a_file_is_told_from_what_was_sent(rt, line, smtp, clock):
    queue(rt, "sent@example.com")
    dispatcher.drain(rt)
    configure(rt, mail_smtp_host="")
    clock.advance(seconds=1)
    queue(rt, "kept@example.com")
    folder = rt.config.mail_dir
    assert line("mail", "flush").text == (
        f"1 sent, 0 given up, 0 still waiting; no SMTP server is set, so they are files in {folder}"
    )
    [_, kept, sent] = line("mail", "outbox").text.splitlines()
    assert kept.split()[2:6] == ["kept@example.com", "sent", "(file)", "1"]
    assert sent.split()[2:5] == ["sent@example.com", "sent", "1"]
    assert {mail["status"] for mail in line.json("mail", "outbox")} == {"sent"}
    # Whoever takes the file away has it.
    for path in folder.iterdir():
        path.unlink()
    assert "(file)" not in line("mail", "outbox").text


# --- flush ---------------------------------------------------------------------------------------


def flushed(*, sent=0, failed=0, waiting=0, error=None):
    return {"sent": sent, "failed": failed, "waiting": waiting, "error": error}


def only_error(rt):
    [error] = {row.last_error for row in rows(rt)} - {None}
    return error


def test_a_flush_does_not_wait_for_the_next_try(rt, line, smtp, clock):
    smtp.refusals["bad@example.com"] = "450 not now"
    smtp.refusals["worse@example.com"] = "550 never"
    for name in ("good", "bad", "worse"):
        queue(rt, f"{name}@example.com")
    assert line.json("mail", "flush") == flushed(sent=1, failed=1, waiting=1)
    assert line.json("mail", "flush") == flushed(waiting=1)
    smtp.refusals.clear()
    assert line("mail", "flush").text == "1 sent, 0 given up, 0 still waiting"
    assert line.json("mail", "flush") == flushed()


def test_a_flush_tells_why_the_server_itself_failed(rt, line):
    with ScriptedSmtpServer(lambda client: client.sendall(b"421 4.3.2 busy\r\n")) as server:
        use_smtp(rt, server.port)
        queue(rt, "first@example.com")
        queue(rt, "second@example.com")
        ran = line("mail", "flush", "--json")
        reason = only_error(rt)
        assert (ran.exit_code, ran.stderr) == (1, f"Error: {reason}\n")
        assert json.loads(ran.stdout) == flushed(waiting=2, error=reason)
        ran = line("mail", "flush")
        assert ran.exit_code == 1
        assert ran.stdout == "0 sent, 0 given up, 2 still waiting\n"
        assert ran.stderr == f"Error: {reason}\n"
        assert server.connections == 2


def test_flushes_while_the_server_is_away_cost_no_mail(rt, line, smtp):
    with ScriptedSmtpServer(lambda client: client.sendall(b"421 4.3.2 busy\r\n")) as server:
        use_smtp(rt, server.port)
        queue(rt)
        for _ in range(7):
            assert line("mail", "flush").stdout == "0 sent, 0 given up, 1 still waiting\n"
    assert only_row(rt).attempts == 0
    use_smtp(rt, smtp.port)
    assert line.json("mail", "flush") == flushed(sent=1)


def test_a_flush_leaves_alone_what_somebody_sends_right_now(rt, line, smtp):
    seen = []
    smtp.on_mail = lambda _mail: seen.append(line.json("mail", "flush"))
    queue(rt)
    dispatcher.drain(rt)
    assert seen == [flushed(waiting=1)]
    assert only_row(rt).attempts == 1


# --- preview -------------------------------------------------------------------------------------


@pytest.mark.parametrize("template", [template.value for template in Template])
def test_every_template_has_a_preview(line, template):
    ran = line("mail", "preview", template)
    assert ran.stderr == ""
    assert ran.text.startswith("<!DOCTYPE html>")
    text = line("mail", "preview", template, "--text").text
    assert "<" not in text
    assert ("SAMPLE-TOKEN" in text) == (mail_keys.MAILS[template].needs not in {"", "code"})


def test_a_preview_can_be_written_to_a_file(line, tmp_path):
    path = tmp_path / "mail.html"
    assert (
        "Gatehouse: reset your password"
        in line("mail", "preview", "password_reset", "--output", str(path)).text
    )
    assert path.read_text().startswith("<!DOCTYPE html>")
    line.refuses(
        "config.error", "mail", "preview", "password_reset", "--output", str(tmp_path / "x" / "y")
    )


def test_a_preview_shows_what_is_in_force_and_what_it_does_not_know(rt, line):
    configure(
        rt,
        public_site_url=["https://files.example"],
        mail_template_password_reset_subject="Hi {{username}} {{surname}}",
        mail_template_password_reset_html="<p>{{ nickname }}: {{reset_url}}</p>",
    )
    ran = line("mail", "preview", "password_reset", "--json")
    assert ran.stderr == "Unknown placeholders: {{surname}}, {{ nickname }}\n"
    assert json.loads(ran.stdout) == {
        "template": "password_reset",
        "subject": "Hi alice {{surname}}",
        "html": "<p>{{ nickname }}: https://files.example/reset-password?token=SAMPLE-TOKEN</p>",
        "text": "{{ nickname }}: https://files.example/reset-password?token=SAMPLE-TOKEN\n",
        "unknown_placeholders": ["{{surname}}", "{{ nickname }}"],
    }


@pytest.mark.parametrize(
    ("template", "setting", "seconds", "told"),
    [
        ("user_invitation", "auth_user_invitation_ttl_secs", 7200, "for 2 hours."),
        ("password_reset", "auth_password_reset_ttl_secs", 5400, "for 90 minutes."),
        ("register_activation", "auth_register_activation_ttl_secs", 7200, "for 2 hours."),
        ("contact_change_confirmation", "auth_contact_change_ttl_secs", 7200, "for 2 hours."),
        ("login_email_code", "auth_email_code_login_ttl_secs", 119, "for 119 seconds."),
        ("login_email_code", "auth_email_code_login_ttl_secs", 299, "for 4 minutes."),
        ("login_email_code", "auth_email_code_login_ttl_secs", 600, "for 5 minutes."),
        ("login_email_code", "auth_mfa_flow_ttl_secs", 180, "for 3 minutes."),
    ],
)
def test_a_preview_names_the_life_that_is_configured(rt, line, template, setting, seconds, told):
    configure(rt, **{setting: seconds})
    assert told in line("mail", "preview", template, "--text").text


def test_a_preview_knows_how_long_an_external_sign_in_waits(line):
    assert timedelta(seconds=previews.EXTERNAL_SIGN_IN_SECONDS) == pending.LIFE
    shown = line("mail", "preview", "external_auth_email_verification", "--text").text
    assert "for 30 minutes." in shown


def test_a_preview_of_nothing_is_bad_usage(line):
    assert line("mail", "preview", "nothing").exit_code == 2
