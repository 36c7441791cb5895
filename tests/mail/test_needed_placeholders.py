"""The HTML of a mail contains what the mail is sent for, where it is read."""

import json

import pytest

from app.core.mail_text import shows
from app.mail.templates import DESCRIPTIONS, Template
from app.settings import frontend_keys, mail_keys, queries
from tests.support.factories import configure
from tests.support.mailbox import text_of
from tests.support.outbox import TOKEN, queue

NEEDED = {name: f"{{{{{mail.needs}}}}}" for name, mail in mail_keys.MAILS.items() if mail.needs}
KEY = "mail_template_password_reset_html"
BROKEN = "<p>Go to {{reset_url}</p>"


@pytest.mark.parametrize(
    "html",
    [
        "{{reset_url}}",
        "<p>Go to {{ reset_url }}</p>",
        "<a href='{{reset_url}}'>here</a>",
        '<a href="{{reset_url}}"><b>here</b></a>',
        "<!-- a comment --><p>{{reset_url}}",
        "<table><tr><td>{{reset_url}}",
        "<![if !mso]>{{reset_url}}<![endif]>",
        "<!--x-->{{reset_url}}<!--{{reset_url}}-->",
    ],
)
def test_what_is_read_or_followed_is_shown(html):
    assert shows(html, "reset_url")


@pytest.mark.parametrize(
    "html",
    [
        "<p>Go to the page</p>",
        BROKEN,
        "{reset_url}} {{resetUrl}} {{reset-url}} {{RESET_URL}} {{reset_url_}} {{}}",
        "{{code}} {{verification_url}}",
        "&#123;{reset_url}} {&lbrace;reset_url}}",
        "{{<b>reset_url</b>}}",
        "<!-- {{reset_url}} -->",
        "<p>x</p><!-- <a href='{{reset_url}}'>here</a> --><p>y</p>",
        "<!--[if mso]>{{reset_url}}<![endif]-->",
        "<style>{{reset_url}}</style>",
        "<script>'{{reset_url}}'</script>",
        "<head><title>{{reset_url}}</title></head><p>x</p>",
        "<template>{{reset_url}}</template>",
        "<textarea>{{reset_url}}</textarea>",
        "<p title='{{reset_url}}' data-url='{{reset_url}}'>x</p>",
        "<img alt='' src='{{reset_url}}'>",
        # The text part would lack it.
        "<div data-only='html'>{{reset_url}}</div>",
    ],
)
def test_what_nobody_reads_is_not(html):
    assert not shows(html, "reset_url")


@pytest.mark.parametrize("template", list(Template))
def test_each_mail_needs_its_link_or_its_code(line, template):
    """And nothing else, as a notice is one without any."""
    key = f"mail_template_{template}_html"
    if template in NEEDED:
        told = line.refuses("bad_request", "config", "set", key, "<p>x</p>")
        assert f"{key} must contain {NEEDED[template]} where it is read" in told
    else:
        assert not {"verification_url", "reset_url", "code"} & {*DESCRIPTIONS[template].variables}
    line.json("config", "set", key, f"<p>x {NEEDED.get(template, '')}</p>")
    line.json("config", "set", key, " \n")


def test_it_is_refused_at_every_door_by_name(boss, line, rt, tmp_path):
    file = tmp_path / "settings.json"
    file.write_text(json.dumps({KEY: BROKEN, "branding_title": "Files"}))
    for told in (
        boss.put(f"/admin/config/{KEY}", {"value": BROKEN}).fails(400, "bad_request").json["msg"],
        boss.patch("/admin/config", {"values": {KEY: BROKEN}})
        .fails(400, "bad_request")
        .json["msg"],
        line.refuses("bad_request", "config", "import", str(file)),
    ):
        assert f"{KEY} must contain {{{{reset_url}}}}" in told
    judged = boss.post("/admin/config/validate", {"values": {KEY: BROKEN}}).ok()
    [problem] = judged["problems"]
    assert problem["key"] == KEY
    assert problem["problem"].startswith("must contain {{reset_url}}")
    assert rt.settings.get(frontend_keys.BRANDING_TITLE) == "Gatehouse"


@pytest.fixture
def stored(rt):
    """What an older version took."""
    with rt.transaction() as session:
        queries.store(session, KEY, BROKEN, rt.clock.now(), None)
    rt.settings.expire()


def test_instead_of_one_that_an_older_version_took_the_built_in_text_is_sent(rt, mailbox, stored):
    configure(rt, mail_template_password_reset_subject="Mine")
    queue(rt)
    message = mailbox.only()
    assert message["Subject"] == "Mine"
    assert mailbox.token(message) == TOKEN
    assert "Somebody asked for a new password" in text_of(message)


def test_one_that_an_older_version_took_is_complained_of_and_shown(boss, line, stored):
    assert boss.get(f"/admin/config/{KEY}").ok()["value"] == BROKEN
    ran = line("config", "validate", "--json")
    assert ran.exit_code == 1
    [problem] = json.loads(ran.stdout)["problems"]
    assert problem["key"] == KEY
    assert KEY not in line.json("config", "export")
    [finding] = [
        one for one in boss.get("/admin/doctor").ok()["checks"] if one["check"] == "settings"
    ]
    assert finding["level"] == "fail"
    assert f"{KEY}: must contain {{{{reset_url}}}}" in finding["message"]


def test_a_draft_is_shown_with_what_it_lacks(boss):
    path = "/admin/mail/templates/password_reset/preview"
    shown = boss.post(path, {"html": BROKEN}).ok()
    assert shown["missing_placeholders"] == ["{{reset_url}}"]
    assert shown["html"] == BROKEN
    for fine in ({}, {"html": " "}, {"html": "{{reset_url}}"}):
        assert boss.post(path, fine).ok()["missing_placeholders"] == []
