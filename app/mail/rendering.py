"""Renders a mail from its template and values.

Invariant: a value can inject neither markup nor a header nor a placeholder.
"""

import html
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path

from app.core.runtime import Runtime
from app.core.texts import one_line
from app.mail.plain_text import plain_text
from app.mail.templates import DESCRIPTIONS, Template
from app.settings import keys
from app.web import site

FOLDER = Path(__file__).parent / "html"
HIDDEN = "***"
SHORT = "a short time"  # for a mail queued by a version that stored no lifetime

_PLACEHOLDER = re.compile(r"\{\{\s*([a-z_]+)\s*\}\}")
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
    return rt.settings.get(keys.BRANDING_TITLE)


def template_text(rt: Runtime, template: Template) -> TemplateText:
    """Return a template's subject and HTML from the settings, else the built-in ones."""
    return TemplateText(
        rt.settings.get(keys.MAIL_TEMPLATE_SUBJECTS[template]) or DESCRIPTIONS[template].subject,
        rt.settings.get(keys.MAIL_TEMPLATE_HTML[template]).strip() or built_in(template),
    )


def render(rt: Runtime, template: Template, stored: Mapping[str, str]) -> Rendered:
    """Render a mail from its stored values.

    A placeholder without a value stays visible as it was typed.
    """
    secrets = DESCRIPTIONS[template].secrets
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
        subject=one_line(_filled(template.subject, values)),
        redacted_subject=one_line(_filled(template.subject, {**values, **hidden})),
        html=_filled(template.html, {name: html.escape(value) for name, value in values.items()}),
        text=_filled(_plain_text(template.html), values),
        secrets=tuple(values[name] for name in hidden if name in values),
    )


def unknown_placeholders(rendered: Rendered) -> list[str]:
    """Return the placeholders left unfilled, as they were typed."""
    left = _PLACEHOLDER.finditer(rendered.subject + rendered.html)
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


# Converted once per template instead of once per mail: parsing HTML takes a millisecond.
_plain_text = lru_cache(maxsize=64)(plain_text)


def _filled(text: str, values: Mapping[str, str]) -> str:
    """Fill all placeholders in a single pass: one inside a value stays plain text."""
    return _PLACEHOLDER.sub(lambda mark: values.get(mark[1], mark[0]), text)
