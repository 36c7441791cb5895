"""/admin/mail, and the test mail of /admin/config."""

import json

import pytest

from app.crypto.tokens import random_uuid
from app.mail import dispatcher
from app.mail.templates import Template
from tests.support import outbox
from tests.support.factories import audit_rows, change_user, configure
from tests.support.outbox import TOKEN, queue, use_smtp

OUTBOX = "/admin/mail/outbox"
TEMPLATES = "/admin/mail/templates"
ACTION = "/admin/config/mail/action"
TRAP = "<script>document.title = 'run'</script><p>Hello {{username}}, {{who}}</p>"


@pytest.fixture
def boss(rt, api, admin):
    configure(rt, auth_access_token_ttl_secs=86400)
    api.login(admin).ok()
    return api


# --- outbox -------------------------------------------------------------------------------------


def test_mails_are_listed_newest_first_without_their_content(boss, rt, clock):
    for number in range(5):
        queue(rt, f"user{number}@example.com")
        clock.advance(seconds=1)
    page = boss.get(f"{OUTBOX}?limit=2&offset=1")
    shown = page.ok()
    assert [mail["recipient"] for mail in shown["items"]] == [
        "user3@example.com",
        "user2@example.com",
    ]
    assert shown["total"] == 5
    assert set(shown["items"][0]) == {
        "id",
        "template",
        "recipient",
        "status",
        "is_file",
        "attempts",
        "last_error",
        "created_at",
        "due_at",
        "finished_at",
    }
    assert TOKEN not in page.text


def test_mails_are_filtered(boss, rt):
    queue(rt, "ada@example.com")
    queue(rt, "Bob_1@example.net", Template.PASSWORD_RESET_NOTICE, username="Bob")
    dispatcher.drain(rt)
    queue(rt, "eve@example.com")

    def found(query):
        page = boss.get(f"{OUTBOX}?{query}").ok()
        assert page["total"] == len(page["items"])
        return sorted(mail["recipient"].lower() for mail in page["items"])

    assert found("status=queued") == ["eve@example.com"]
    assert found("status=sent") == ["ada@example.com", "bob_1@example.net"]
    assert found("template=password_reset_notice") == ["bob_1@example.net"]
    assert found("recipient=bob_") == ["bob_1@example.net"]
    assert found("recipient=%25") == []
    [mail] = boss.get(f"{OUTBOX}?recipient=ada").ok()["items"]
    assert (mail["is_file"], mail["due_at"]) == (True, None)
    boss.get(f"{OUTBOX}?status=lost").fails(400, "bad_request")


def test_flushing_answers_what_became_of_the_mails(boss, rt, smtp, admin):
    queue(rt)
    assert boss.post(f"{OUTBOX}/flush").ok() == {
        "sent": 1,
        "failed": 0,
        "waiting": 0,
        "error": None,
    }
    queue(rt)
    use_smtp(rt, 1)
    flushed = boss.post(f"{OUTBOX}/flush").ok()
    assert (flushed["sent"], flushed["waiting"]) == (0, 1)
    assert flushed["error"]
    entry = audit_rows(rt, "config_action_execute")[-1]
    assert (entry.user_id, entry.entity_type) == (admin.id, "mail")
    assert TOKEN not in entry.details


def test_a_waiting_mail_is_hurried_and_a_finished_one_is_not(boss, rt, clock):
    use_smtp(rt, 1)
    queue(rt)
    dispatcher.drain(rt)
    [row] = outbox.rows(rt)
    assert row.due_at > clock.now()
    mail = boss.post(f"{OUTBOX}/{row.id}/retry").ok()
    assert mail["status"] == "queued"
    assert outbox.rows(rt)[0].due_at == clock.now()
    configure(rt, mail_smtp_host="")
    dispatcher.drain(rt)
    boss.post(f"{OUTBOX}/{row.id}/retry").fails(409, "conflict")
    for unknown in (random_uuid(), "1", "a%00b", "x" * 300):
        boss.post(f"{OUTBOX}/{unknown}/retry").fails(404, "not_found")


def test_a_role_that_is_gone_sends_nothing(boss, rt, admin, smtp):
    queue(rt)
    change_user(rt, admin, role="user")
    boss.post(f"{OUTBOX}/flush").fails(403, "auth.admin_required")
    boss.post(ACTION, {"action": "send_test_email"}).fails(403, "auth.admin_required")
    assert smtp.received == []


def test_the_command_hurries_a_mail_as_well(line, rt):
    use_smtp(rt, 1)
    queue(rt)
    dispatcher.drain(rt)
    [row] = outbox.rows(rt)
    assert line.json("mail", "retry", row.id)["id"] == row.id
    line.refuses("not_found", "mail", "retry", "nothing")


# --- test mail ----------------------------------------------------------------------------------


def test_a_test_mail_goes_to_the_administrator_or_elsewhere(boss, rt, smtp, admin):
    assert admin.email in boss.post(ACTION, {"action": "send_test_email"}).ok()["message"]
    body = {"action": "send_test_email", "target_email": "ada@example.net"}
    boss.post(ACTION, body).ok()
    assert smtp.recipients == [admin.email, "ada@example.net"]
    entry = audit_rows(rt, "config_action_execute")[-1]
    assert json.loads(entry.details) == {"action": "send_test_email"}


def test_a_test_mail_that_fails_tells_why(boss, rt, smtp):
    smtp.refusals["ada@example.net"] = "550 no such user"
    body = {"action": "send_test_email", "target_email": "ada@example.net"}
    assert "550" in boss.post(ACTION, body).fails(503, "mail.delivery_failed").json["msg"]
    configure(rt, mail_smtp_host="")
    boss.post(ACTION, body).fails(503, "mail.not_configured")


def test_there_is_no_other_action(boss):
    test_mail = {"action": "send_test_email"}
    boss.post(ACTION, {"action": "reboot"}).fails(400, "bad_request")
    boss.post("/admin/config/branding_title/action", test_mail).fails(400, "bad_request")
    boss.post(ACTION, {**test_mail, "target_email": "nobody"}).fails(400, "bad_request")


# --- templates ----------------------------------------------------------------------------------


def test_templates_and_their_variables_are_told(boss, rt):
    configure(rt, mail_template_password_reset_subject="Mine")
    told = {one["template"]: one for one in boss.get(TEMPLATES).ok()}
    assert set(told) == {*Template}
    reset = told["password_reset"]
    assert (reset["is_overridden"], reset["html_key"]) == (
        True,
        "mail_template_password_reset_html",
    )
    assert "reset_url" in reset["variables"]
    groups = {
        one["template_code"]: one for one in boss.get("/admin/config/template-variables").ok()
    }
    assert set(groups) == {*Template}
    tokens = [one["token"] for one in groups["password_reset"]["variables"]]
    assert "{{reset_url}}" in tokens


def test_a_draft_is_shown_and_not_set(boss, rt):
    before = boss.get("/admin/config?limit=100").text
    draft = {"subject": "Hi {{username}}", "html": TRAP}
    shown = boss.post(f"{TEMPLATES}/password_reset/preview", draft).ok()
    assert shown["subject"] == "Hi alice"
    assert "Hello alice" in shown["text"]
    assert shown["unknown_placeholders"] == ["{{who}}"]
    assert boss.get("/admin/config?limit=100").text == before
    plain = boss.post(f"{TEMPLATES}/password_reset/preview", {}).ok()
    assert plain["unknown_placeholders"] == []
    german = boss.post(
        f"{TEMPLATES}/login_email_code/preview", {"html": "{{lang}}", "language": "de"}
    )
    assert german.ok()["html"] == "de"


def test_a_draft_that_cannot_be_a_template_is_refused(boss):
    path = f"{TEMPLATES}/password_reset/preview"
    for draft in ({"subject": "x" * 256}, {"subject": "a\nb"}, {"html": "x" * 65_537}, {"html": 1}):
        boss.post(path, draft).fails(400, "bad_request")
    boss.post(f"{TEMPLATES}/nothing/preview", {}).fails(404, "not_found")


def test_the_page_of_a_draft_is_shut_in_and_goes_away(boss, rt):
    url = boss.post(f"{TEMPLATES}/password_reset/preview", {"html": TRAP}).ok()["preview_url"]
    page = boss.get(url)
    assert page.status == 200
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    policy = page.headers["Content-Security-Policy"]
    assert policy == "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    assert "Hello alice" in page.text
    boss.get(url.replace("password_reset", "user_invitation")).fails(404, "not_found")
    boss.stranger().get(url).fails(401, "auth.token_missing")
    rt.redis.client.flushdb()
    boss.get(url).fails(404, "not_found")
    stored = boss.get(f"{TEMPLATES}/password_reset/preview.html")
    assert stored.status == 200
    assert "alice" in stored.text
