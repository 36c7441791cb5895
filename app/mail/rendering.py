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
from app.settings import frontend_keys, mail_keys
from app.web import site

FOLDER = Path(__file__).parent / "html"
HIDDEN = "***"
SHORT = "a short time"  # for a mail queued by a version that stored no lifetime

_BUTTON = re.compile(r"<!-- button: (\w+) \| (.+?) -->")
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


def template_text(rt: Runtime, template: Template) -> TemplateText:
    """Return a template's subject and HTML from the settings, else the built-in ones.

    HTML that lacks what the mail is sent for, as older versions took it, counts as not set.
    """
    html = rt.settings.get(mail_keys.MAIL_TEMPLATE_HTML[template]).strip()
    if mail_keys.missing_placeholder(template, html) is not None:
        html = ""
    subject = rt.settings.get(mail_keys.MAIL_TEMPLATE_SUBJECTS[template])
    return TemplateText(subject or DESCRIPTIONS[template].subject, html or built_in(template))


def built_in_texts() -> dict[str, str]:
    """Return the built-in subject and HTML of every template, by the setting that overrides it."""
    subjects = {
        key.name: DESCRIPTIONS[Template(name)].subject
        for name, key in mail_keys.MAIL_TEMPLATE_SUBJECTS.items()
    }
    pages = {key.name: built_in(name) for name, key in mail_keys.MAIL_TEMPLATE_HTML.items()}
    return subjects | pages


def render(rt: Runtime, template: Template, stored: Mapping[str, str]) -> Rendered:
    """Render a mail from its stored values.

    A placeholder without a value stays visible as it was typed.
    """
    needed = mail_keys.MAILS[template].needs
    secrets = (needed,) if needed else ()
    return fill(template_text(rt, template), variables(rt, template, stored), secrets)


def variables(rt: Runtime, template: Template, stored: Mapping[str, str]) -> dict[str, str]:
    """Return the values of a template's variables; a stored token becomes its link."""
    values, link = dict(stored), DESCRIPTIONS[template].link
    if "expires_in" in DESCRIPTIONS[template].variables:
        values.setdefault("expires_in", SHORT)
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
def built_in(name: str) -> str:
    """Return a built-in template: its body inside the shared layout.

    The preheader is what a list of mails shows beside the subject. The address behind each button
    is repeated at the end, for readers who cannot click it.
    """
    body = _read(name)
    [preheader] = _PREHEADER.findall(body)
    buttons = _BUTTON.findall(body)
    body = _BARE.sub(lambda tag: STYLES[tag[2] or tag[1]], _PREHEADER.sub("", body))
    for variable, label in buttons:
        body = _BUTTON.sub(_leading("button", variable).replace("label", label), body, count=1)
        body += "\n" + _leading("address", variable)
    layout = _read("layout").replace("<!-- preheader -->", preheader)
    return layout.replace("<!-- body -->", body)


def _leading(name: str, variable: str) -> str:
    """Return an HTML fragment that links to the address in a variable."""
    return _read(name).replace("{{address}}", "{{" + variable + "}}")


def _read(name: str) -> str:
    return (FOLDER / f"{name}.html").read_text(encoding="utf-8").strip()


DAY, HOUR, MINUTE = ("day", 86_400), ("hour", 3600), ("minute", 60)


def duration_in_words(seconds: int) -> str:
    """Return a duration in words: "3 days", "1 hour", "90 minutes", "45 seconds".

    Whole days or hours if exact, else minutes rounded up; below a minute, seconds.
    """
    if exact := _in_whole(seconds, DAY, HOUR):
        return exact
    unit, length = MINUTE
    return _counted(-(-seconds // length), unit) if seconds >= length else exact_duration(seconds)


def exact_duration(seconds: int) -> str:
    """Return a duration in words without rounding: "5 minutes", "1 minute", "299 seconds"."""
    return _in_whole(seconds, DAY, HOUR, MINUTE) or _counted(seconds, "second")


def rounded_duration(seconds: int) -> str:
    """Return a duration in words, rounded down: "4 minutes" for 299 seconds.

    Uses the largest unit that fits at least twice, so that at most a third is lost.
    """
    if exact := _in_whole(seconds, DAY, HOUR, MINUTE):
        return exact
    for unit, length in (DAY, HOUR, MINUTE):
        if seconds >= 2 * length:
            return _counted(seconds // length, unit)
    return _counted(seconds, "second")


def _in_whole(seconds: int, *units: tuple[str, int]) -> str | None:
    """Return the span in the first unit that divides it; None if none does."""
    for unit, length in units:
        if seconds >= length and seconds % length == 0:
            return _counted(seconds // length, unit)
    return None


def _counted(number: int, unit: str) -> str:
    return f"{number} {unit}" if number == 1 else f"{number} {unit}s"
