"""Renders a mail from its template and values.

Invariant: a value can inject neither markup nor a header nor a placeholder.
"""

import html
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from app.core.mail_text import PLACEHOLDER, filled
from app.core.mail_text import plain_text as plain_text
from app.core.runtime import Runtime
from app.core.texts import one_line
from app.mail.templates import DESCRIPTIONS, Template
from app.mail.words import ENGLISH, WORDS
from app.settings import frontend_keys, mail_keys
from app.web import site

FOLDER = Path(__file__).parent / "html"
HIDDEN = "***"

_BUTTON = re.compile(r"<!-- button: (\w+) \| (.+?) -->")
_SUBJECT = re.compile(r"<!-- subject: (.+?) -->\n")
_PREHEADER = re.compile(r"<!-- preheader: (.+?) -->\n")
_BARE = re.compile(r"<(h1|p)(?: class=\"(\w+)\")?>")
STYLES = {
    "h1": '<h1 class="title" style="margin: 0 0 16px; font-size: 22px; line-height: 28px; '
    'font-weight: 600; color: #1f2933;">',
    "p": '<p class="text" style="margin: 0 0 16px; font-size: 16px; line-height: 24px; '
    'color: #1f2933;">',
    "code": '<p class="code" style="margin: 0 0 16px; padding: 16px; font-size: 28px; '
    "line-height: 32px; font-weight: 600; letter-spacing: 4px; text-align: center; "
    'color: #1f2933; background-color: #eef1f4; border-radius: 6px;">',
}


@dataclass(frozen=True)
class Rendered:
    """The parts of a rendered mail.

    `secrets` are the links and codes in it. `redacted_subject` is the subject without
    them, for logs.
    """

    subject: str = field(repr=False)
    redacted_subject: str
    html: str = field(repr=False)
    text: str = field(repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class TemplateText:
    """A template in force, with its placeholders still unfilled."""

    subject: str
    html: str


def site_name(rt: Runtime) -> str:
    """Return the site's name for use in mails."""
    return rt.settings.get(frontend_keys.BRANDING_TITLE)


def template_text(rt: Runtime, template: Template, language: str) -> TemplateText:
    """Return a template's subject and HTML from the settings, else the built-in ones."""
    subject = rt.settings.get(mail_keys.MAIL_TEMPLATE_SUBJECTS[template])
    ours = built_in(template, language)
    return TemplateText(subject or ours.subject, own_html(rt, template) or ours.html)


def own_html(rt: Runtime, template: Template) -> str:
    """Return the HTML that the settings have for readers of every language; "" for the built-in.

    What lacks that which the mail is sent for, as older versions took it, counts as not set.
    """
    html = rt.settings.get(mail_keys.MAIL_TEMPLATE_HTML[template]).strip()
    return "" if mail_keys.missing_placeholder(template, html) is not None else html


def built_in_texts() -> dict[str, str]:
    """Return the built-in subject and HTML of every template, by the setting that overrides it.

    In English: another language's are in the previews.
    """
    texts = {template: built_in(template, ENGLISH) for template in Template}
    subjects, pages = mail_keys.MAIL_TEMPLATE_SUBJECTS, mail_keys.MAIL_TEMPLATE_HTML
    return {
        **{subjects[template].name: text.subject for template, text in texts.items()},
        **{pages[template].name: text.html for template, text in texts.items()},
    }


def render(
    rt: Runtime, template: Template, stored: Mapping[str, str], language: str = ENGLISH
) -> Rendered:
    """Render a mail from its stored values.

    A placeholder without a value stays visible as it was typed.
    """
    needed = mail_keys.MAILS[template].needs
    secrets = (needed,) if needed else ()
    values = variables(rt, template, stored, language)
    return fill(template_text(rt, template, language), values, secrets)


def variables(
    rt: Runtime, template: Template, stored: Mapping[str, str], language: str
) -> dict[str, str]:
    """Return the values of a template's variables; a stored token becomes its link."""
    values, link = dict(stored), DESCRIPTIONS[template].link
    if "expires_in" in DESCRIPTIONS[template].variables:
        values.setdefault("expires_in", WORDS[language].a_short_time)
    if link and "token" in values:
        values[link.variable] = site.link(rt, link.path + values.pop("token"))
    return values


def fill(
    template: TemplateText, values: Mapping[str, str], secrets: Iterable[str] = ()
) -> Rendered:
    """Fill a template's placeholders; `secrets` names the variables that must not be logged."""
    values = {name: one_line(value) for name, value in values.items()}
    hidden = dict.fromkeys(secrets, HIDDEN)
    return Rendered(
        subject=one_line(filled(template.subject, values)),
        redacted_subject=one_line(filled(template.subject, {**values, **hidden})),
        html=filled(template.html, {name: html.escape(value) for name, value in values.items()}),
        text=filled(plain_text(template.html), values),
        secrets=tuple(values[name] for name in hidden if name in values),
    )


def unknown_placeholders(rendered: Rendered) -> list[str]:
    """Return the placeholders left unfilled, as they were typed."""
    left = PLACEHOLDER.finditer(rendered.subject + rendered.html)
    return list(dict.fromkeys(mark[0] for mark in left))


@cache
def built_in(name: str, language: str) -> TemplateText:
    """Return a built-in template: its body inside the shared layout.

    The preheader is what a list of mails shows beside the subject. The address behind each button
    is repeated at the end, for readers who cannot click it.
    """
    body = _read(f"{language}/{name}")
    [subject], [preheader] = _SUBJECT.findall(body), _PREHEADER.findall(body)
    buttons = _BUTTON.findall(body)
    body = _PREHEADER.sub("", _SUBJECT.sub("", body))
    body = _BARE.sub(lambda tag: STYLES[tag[2] or tag[1]], body)
    for variable, label in buttons:
        body = _BUTTON.sub(_leading("button", variable).replace("label", label), body, count=1)
        body += "\n" + _leading("address", variable).replace("hint", WORDS[language].below_button)
    html = _read("layout").replace("<!-- preheader -->", preheader)
    html = html.replace("<!-- footer -->", WORDS[language].footer).replace("<!-- body -->", body)
    return TemplateText(subject, html.replace('lang="en"', f'lang="{language}"'))


def _leading(name: str, variable: str) -> str:
    """Return an HTML fragment that links to the address in a variable."""
    return _read(name).replace("{{address}}", "{{" + variable + "}}")


def _read(name: str) -> str:
    return (FOLDER / f"{name}.html").read_text(encoding="utf-8").strip()
