"""What a mail says, in both parts."""

import itertools
import re
from datetime import timedelta
from html.parser import HTMLParser

import pytest

from app.mail import dispatcher, service
from app.mail.rendering import TemplateText, built_in, fill, plain_text, render
from app.mail.templates import DESCRIPTIONS, Template
from app.mail.words import ENGLISH, WORDS, duration, exact_duration, rounded_duration
from app.settings import mail_keys
from tests.support.factories import configure
from tests.support.mailbox import html_of, text_of
from tests.support.outbox import TOKEN, queue

SITE = "https://files.example"
VALUES = {
    "username": "Ada",
    "email": "ada@example.com",
    "previous_email": "old@example.com",
    "new_email": "new@example.com",
    "token": TOKEN,
    "code": "12345678",
    "provider_name": "Example Login",
    "event": "A second factor was added.",
    "expires_in": "3 days",
    "good_for": "2 days",
    "lang": "en",
    "invitation_url": f"{SITE}/invite/{TOKEN}",
    "signed_in_at": "2 March 2026, 09:30 UTC",
    "browser": "Firefox on Windows",
    "ip_address": "203.0.113.9",
    "method": "password and authenticator app",
    "security_url": f"{SITE}/settings/security",
}
LINKS = {
    Template.REGISTER_ACTIVATION: f"{SITE}/api/v1/auth/contact-verification/confirm?token={TOKEN}",
    Template.CONTACT_CHANGE_CONFIRMATION: (
        f"{SITE}/api/v1/auth/contact-verification/confirm?token={TOKEN}"
    ),
    Template.PASSWORD_RESET: f"{SITE}/reset-password?token={TOKEN}",
    Template.EXTERNAL_AUTH_EMAIL_VERIFICATION: (
        f"{SITE}/api/v1/auth/external-auth/email-verification/confirm?token={TOKEN}"
    ),
    Template.USER_INVITATION: f"{SITE}/invite/{TOKEN}",
    Template.NEW_SIGN_IN: f"{SITE}/settings/security",
}
ALL = pytest.mark.parametrize(
    ("template", "language"), list(itertools.product(Template, WORDS)), ids=str
)


def sent(rt, mailbox, template, language=ENGLISH, **changes):
    """Queue a mail of this template and return it as it arrives."""
    values = {name: VALUES[name] for name in DESCRIPTIONS[template].stored - {"site_name"}}
    queue(rt, "ada@example.com", template, language=language, **(values | changes))
    return mailbox.only()


class Tags(HTMLParser):
    def __init__(self, html):
        super().__init__()
        self.names, self.links, self.attributes = [], [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.names.append(tag)
        self.attributes += attrs
        if tag == "a":
            self.links.append(dict(attrs)["href"])


def test_the_settings_know_every_template():
    assert [template.value for template in Template] == list(mail_keys.MAILS)
    assert set(DESCRIPTIONS) == set(Template)
    for template, description in DESCRIPTIONS.items():
        needed = mail_keys.MAILS[template].needs
        assert needed in {"", *description.variables}
        assert not description.link or description.link.variable == needed


@ALL
def test_every_template_says_all_it_knows_in_both_parts(rt, mailbox, template, language):
    configure(rt, public_site_url=[SITE], branding_title="Ada's Files")
    message = sent(rt, mailbox, template, language)
    text, html = text_of(message), html_of(message)
    known = DESCRIPTIONS[template]
    # For templates of an operator: the built-in wording has a rounded time.
    replaced = ["expires_in", "lang"] if "good_for" in known.variables else []
    for name in set(known.variables) - {
        "site_name",
        *([known.link.variable] if known.link else replaced),
    }:
        assert VALUES[name] in text
        assert VALUES[name] in html
    assert "Ada's Files" in message["Subject"]
    assert "Ada's Files" in text
    assert "{{" not in message["Subject"] + text + html
    assert not re.search(r"<|>|&\w+;", text)


@ALL
def test_a_link_stands_bare_in_the_text_and_twice_in_the_html(rt, mailbox, template, language):
    configure(rt, public_site_url=[SITE, "https://other.example"])
    message = sent(rt, mailbox, template, language)
    links = re.findall(r"https?://\S+", text_of(message))
    expected = [LINKS[template]] if template in LINKS else []
    assert links == expected
    assert Tags(html_of(message)).links == expected * 2


@pytest.mark.parametrize("language", WORDS)
@pytest.mark.parametrize("template", LINKS)
def test_the_address_of_a_button_stands_below_everything_else(template, language):
    html, hint = built_in(template, language).html, WORDS[language].below_button
    _, _, below = html.partition(hint)
    card, _, _ = below.partition("</td>")
    assert card
    assert "<p" not in card


@ALL
def test_what_a_list_of_mails_shows_is_in_the_html_only(rt, mailbox, template, language):
    message = sent(rt, mailbox, template, language)
    [shown] = re.findall(
        r'<div data-only="html" style="display: none;[^>]*>(.+?)</div>', html_of(message)
    )
    assert TOKEN not in shown
    assert VALUES["code"] not in shown
    assert (
        text_of(message).splitlines()[0] == re.search(r"<h1[^>]*>(.+?)</h1>", html_of(message))[1]
    )


@ALL
def test_no_template_loads_anything_from_elsewhere(template, language):
    html = built_in(template, language).html
    tags = Tags(html)
    assert not {"img", "link", "script", "iframe", "object"} & set(tags.names)
    assert not {name for name, _ in tags.attributes} & {"src", "background", "srcset"}
    assert "url(" not in html
    assert "@import" not in html


@ALL
def test_every_template_is_readable_in_dark_mode(template, language):
    html = built_in(template, language).html
    assert '<meta name="color-scheme" content="light dark">' in html
    styled = set(re.findall(r"^    \.(\w+)", html, re.MULTILINE)) | {"text", "title"}
    for classes in re.findall(r'class="([^"]+)"', html):
        assert classes in styled


def test_without_a_site_address_a_link_is_a_path(rt, mailbox):
    message = sent(rt, mailbox, Template.PASSWORD_RESET)
    assert mailbox.link(message) == f"/reset-password?token={TOKEN}"
    assert mailbox.token(message) == TOKEN


# --- overrides -----------------------------------------------------------------------------------


def test_the_settings_replace_subject_and_html(rt, mailbox):
    configure(
        rt,
        mail_template_password_reset_subject="{{ site_name }} für {{username}}",
        mail_template_password_reset_html="<p>Hi {{username}}</p>\n<a href='{{reset_url}}'>go</a>",
    )
    message = sent(rt, mailbox, Template.PASSWORD_RESET)
    assert message["Subject"] == "Gatehouse für Ada"
    assert html_of(message).startswith("<p>Hi Ada</p>")
    assert text_of(message) == f"Hi Ada\n\ngo:\n/reset-password?token={TOKEN}\n"


def test_a_blank_override_is_none(rt, mailbox):
    configure(rt, mail_template_password_reset_html="  \n", mail_template_password_reset_subject="")
    message = sent(rt, mailbox, Template.PASSWORD_RESET)
    assert message["Subject"] == "Gatehouse: reset your password"
    assert "Hello Ada" in text_of(message)


def test_an_unknown_placeholder_stays_as_it_was_typed(rt, mailbox):
    html = "<p>{{ nickname }} {{username}} {{}} {x}</p>"
    configure(rt, mail_template_password_reset_notice_html=html)
    message = sent(rt, mailbox, Template.PASSWORD_RESET_NOTICE)
    assert text_of(message) == "{{ nickname }} Ada {{}} {x}\n"


# --- injection -----------------------------------------------------------------------------------

NASTY = "Ada\r\nBcc: eve@evil.example\r\n\r\n<script>{{reset_url}}</script>&amp;\x00\u202e"


def test_a_value_becomes_neither_header_nor_markup_nor_placeholder(rt, mailbox):
    configure(
        rt,
        mail_template_password_reset_subject="{{username}}",
        branding_title='<b>"Files" {{username}}</b>, evil@evil.example',
    )
    message = sent(rt, mailbox, Template.PASSWORD_RESET, username=NASTY)
    told = "Ada Bcc: eve@evil.example <script>{{reset_url}}</script>&amp;"
    assert message["Subject"] == told
    assert message["Bcc"] is None
    assert str(message["To"]) == "ada@example.com"
    assert f"Hello {told}," in text_of(message)
    assert '<b>"Files" {{username}}</b>' in text_of(message)
    html = html_of(message)
    assert not {"script", "b"} & set(Tags(html).names)
    assert "&lt;script&gt;{{reset_url}}&lt;/script&gt;&amp;amp;" in html


@pytest.mark.parametrize(("chosen", "name"), [({}, "Acme Files"), ({"mail_from_name": "IT"}, "IT")])
def test_mails_come_from_the_site_unless_another_name_is_set(rt, mailbox, chosen, name):
    configure(rt, branding_title="Acme Files", **chosen)
    [sender] = sent(rt, mailbox, Template.PASSWORD_RESET)["From"].addresses
    assert sender.display_name == name


def test_a_senders_name_stays_a_name(rt, mailbox):
    configure(rt, mail_from_name='Files, "the" <evil@evil.example>')
    message = sent(rt, mailbox, Template.PASSWORD_RESET)
    [sender] = message["From"].addresses
    assert sender.display_name == 'Files, "the" <evil@evil.example>'
    assert sender.addr_spec == "no-reply@localhost"


def test_a_link_cannot_leave_its_attribute(rt):
    rendered = render(rt, Template.USER_INVITATION, VALUES | {"invitation_url": "x\" onclick='y'"})
    assert 'href="x&quot; onclick=&#x27;y&#x27;"' in rendered.html


def test_a_secret_is_left_out_of_the_open_subject():
    template_text = TemplateText("{{code}} for {{username}}", "<p>{{code}}</p>")
    rendered = fill(template_text, {"code": "123", "username": "Ada"}, ("code",))
    assert rendered.subject == "123 for Ada"
    assert rendered.redacted_subject == "*** for Ada"
    assert rendered.secrets == ("123",)


# --- HTML as text --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>One</p><p>two</p>", "One\n\ntwo\n"),
        ("<p>One\n   two<br>three</p>", "One two\nthree\n"),
        ("<p>As</p><ul><li>one</li><li>two</li></ul>", "As\n\n- one\n\n- two\n"),
        ("One &amp; &lt;two&gt; &uuml;", "One & <two> ü\n"),
        (
            '<a href="https://a.example/?x=1&amp;y=2">here</a>',
            "here:\nhttps://a.example/?x=1&y=2\n",
        ),
        ('<a href="https://a.example/">https://a.example/</a>', "https://a.example/\n"),
        ('See <a href="https://a.example/"></a>.', "See https://a.example/.\n"),
        ("<a name=x>here</a>", "here\n"),
        ("<head><title>no</title></head><style>no</style><p>yes</p><script>no</script>", "yes\n"),
        ('<p data-only="html">no<b>no</b></p>yes', "yes\n"),
        ('<div data-only="html"><div>no</div>no</div>yes', "yes\n"),
        ('<p data-only="html">no<b>no</p>yes', "yes\n"),
        ('<br data-only="html">yes', "yes\n"),
        ("<table><tr><td>One</td></tr><tr><td>two</td></tr></table>", "One\n\ntwo\n"),
        ("<p>One</p>\n\n\n<div></div><p>two", "One\n\ntwo\n"),
        ("", "\n"),
    ],
)
def test_html_becomes_text(html, text):
    assert plain_text(html) == text


# --- spans in words ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (259_200, "3 days"),
        (86_400, "1 day"),
        (90_000, "25 hours"),
        (3600, "1 hour"),
        (7200, "2 hours"),
        (5400, "90 minutes"),
        (3601, "61 minutes"),
        (300, "5 minutes"),
        (61, "2 minutes"),
        (60, "1 minute"),
        (59, "59 seconds"),
        (1, "1 second"),
        (0, "0 seconds"),
    ],
)
def test_a_life_in_words(seconds, words):
    assert duration(seconds) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (600, "10 minutes"),
        (300, "5 minutes"),
        (299, "299 seconds"),
        (60, "1 minute"),
        (3600, "1 hour"),
        (1, "1 second"),
    ],
)
def test_an_exact_life(seconds, words):
    assert exact_duration(seconds) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (300, "5 minutes"),
        (299, "4 minutes"),
        (120, "2 minutes"),
        (119, "119 seconds"),
        (60, "1 minute"),
        (59, "59 seconds"),
        (3600, "1 hour"),
        (7199, "119 minutes"),
        (7201, "2 hours"),
        (259_199, "2 days"),
        (0, "0 seconds"),
    ],
)
def test_a_rounded_life_is_never_longer_than_it_is(seconds, words):
    assert rounded_duration(seconds) == words


@pytest.mark.parametrize(
    ("late", "told"), [(60, "for 1 hour"), (61, "for 58 minutes"), (3589, "for 11 seconds")]
)
def test_a_mail_that_leaves_late_promises_what_is_left(rt, mailbox, clock, late, told):
    with rt.transaction() as session:
        end = clock.now() + timedelta(hours=1)
        values = {"username": "Ada", "token": TOKEN, "expires_in": "1 hour"}
        template = Template.PASSWORD_RESET
        service.queue(rt, session, template, "ada@example.com", expires_at=end, **values)
    clock.advance(seconds=late)
    assert f"The link works once, {told}." in text_of(mailbox.only())


def test_a_mail_that_an_older_version_queued_has_no_gaps(rt):
    rendered = render(rt, Template.PASSWORD_RESET, {"username": "Ada", "token": TOKEN})
    assert "The link works once, for a short time." in rendered.text
    assert "{{expires_in}}" not in rendered.html


def test_a_mail_is_written_in_the_name_the_site_has_when_it_is_queued(rt, mailbox):
    with rt.transaction() as session:
        values = {"username": "Ada"}
        service.queue(rt, session, Template.PASSWORD_RESET_NOTICE, "ada@example.com", **values)
    configure(rt, branding_title="Renamed")
    dispatcher.drain(rt)
    assert mailbox.only()["Subject"] == "Gatehouse: your password was changed"


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>Hello</p><!--[if mso]>no<![endif]--><![if !mso]>yes<![endif]>", "Hello\n\nyes\n"),
        ("say<br/>it<BR CLASS=x>so", "say\nit\nso\n"),
        ("<a title='>' href=/x?a=1&amp;b=2>go</a>", "go:\n/x?a=1&b=2\n"),
        ("<p>Hello <![foo]>you", "Hello you\n"),
        ("a</b>c<![", "ac\n"),
    ],
)
def test_malformed_html_is_read_as_far_as_it_goes(html, text):
    assert plain_text(html) == text


LONGEST_TEMPLATE = 65_536


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<a b ", ""),
        ("<a/", ""),
        ("<p>x", "\n\n".join("x" * 16_384)),
        ("<li>x", "\n\n".join(["- x"] * 13_107)),
        ("x<br>", "\n".join("x" * 13_107)),
        ("<div>", ""),
        ("<a href=/>x", ":\n/\n".join("x" * 5_957) + ":\n/"),
        ("<table><td>x", "\n".join("x" * 5_461)),
    ],
)
def test_malformed_html_of_the_greatest_length_is_read_at_once(html, text):
    assert plain_text(html * (LONGEST_TEMPLATE // len(html))) == text + "\n"
