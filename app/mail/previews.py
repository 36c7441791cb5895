"""Shows mails with sample values: as they would be sent now, or as a draft would make them."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from app.core.runtime import Runtime
from app.crypto.tokens import digest, random_token
from app.mail.errors import DraftGone, TemplateInvalid
from app.mail.rendering import (
    Rendered,
    TemplateText,
    fill,
    site_name,
    template_text,
    unknown_placeholders,
    variables,
)
from app.mail.service import language_of, lifetime_in_words
from app.mail.templates import DESCRIPTIONS, Template
from app.mail.words import WORDS
from app.settings import keys, mail_keys
from app.web import site

SAMPLES = {
    "username": "alice",
    "email": "alice@example.com",
    "previous_email": "alice@example.com",
    "new_email": "alice.new@example.com",
    "token": "SAMPLE-TOKEN",
    "code": "12345678",
    "provider_name": "Example Login",
    "event": "A second factor was added.",
    "ip_address": "203.0.113.9",
}
SIGNED_IN_AT = datetime(2026, 11, 29, 9, 41, tzinfo=UTC)
# The link that proves a mailbox lives as long as the sign-in that waits for it.
EXTERNAL_SIGN_IN_SECONDS = 1800


DRAFT_KEY = "gatehouse:mail_draft:"
DRAFT_LIFE = timedelta(minutes=5)


@dataclass(frozen=True)
class Preview:
    """A template filled with sample values.

    `unknown` lists placeholders without a value, `missing` those that a draft has to contain.
    """

    rendered: Rendered
    unknown: list[str]
    missing: list[str]


@dataclass(frozen=True)
class Draft:
    """What is to be tried in place of what is set; None, or blank, leaves that as it is."""

    subject: str | None = None
    html: str | None = None
    language: str | None = None


def preview(rt: Runtime, template: Template, draft: Draft = Draft()) -> Preview:
    """Render a template with sample values: the one in force, but for what a draft replaces.

    Raises: TemplateInvalid.
    """
    known = DESCRIPTIONS[template]
    language = language_of(rt, template, draft.language, (draft.html or "").strip())
    samples = {
        **SAMPLES,
        **_words_of(language),
        "lang": draft.language or language,
        "site_name": site_name(rt),
        "invitation_url": site.link(rt, "/invite/SAMPLE-TOKEN"),
        "security_url": site.link(rt, "/settings/security"),
        **_lifetime(rt, template, language),
    }
    stored = {name: samples[name] for name in known.stored}
    rendered = fill(
        _drafted(rt, template, draft, language), variables(rt, template, stored, language)
    )
    missing = mail_keys.missing_placeholder(template, draft.html or "")
    return Preview(rendered, unknown_placeholders(rendered), [missing] if missing else [])


def keep_draft(rt: Runtime, template: Template, html: str) -> str:
    """Keep a rendered draft for a few minutes, so that a page can show it in a frame; name it."""
    name = random_token()
    rt.redis.client.set(f"{DRAFT_KEY}{template}:{digest(name)}", html, ex=DRAFT_LIFE)
    return name


def kept_html(rt: Runtime, template: Template, name: str) -> str:
    """Return the HTML of a draft that was kept.

    Raises: DraftGone.
    """
    html: Any = rt.redis.client.get(f"{DRAFT_KEY}{template}:{digest(name)}")
    if html is None:
        raise DraftGone
    return str(html)


def _drafted(rt: Runtime, template: Template, draft: Draft, language: str) -> TemplateText:
    in_force = template_text(rt, template, language)
    try:
        subject = mail_keys.MAIL_TEMPLATE_SUBJECTS[template].render(draft.subject or "")
        html = mail_keys.MAIL_TEMPLATE_HTML[template].render(draft.html or "")
    except mail_keys.PlaceholderMissing:
        html = draft.html or ""  # shown as far as it goes, together with what is missing
    except ValueError as error:
        raise TemplateInvalid(f"The draft {error}.") from None
    return TemplateText(subject or in_force.subject, html if html.strip() else in_force.html)


def _words_of(language: str) -> dict[str, str]:
    words = WORDS[language]
    return {
        "signed_in_at": words.moment.format(SIGNED_IN_AT),
        "browser": words.device.format("Firefox", "Windows"),
        "method": words.methods["password"],
    }


def _lifetime(rt: Runtime, template: Template, language: str) -> dict[str, str]:
    """Return the lifetime, in words, that the mail would state if it were sent now."""
    flow, code = keys.MFA_FLOW_TTL_SECONDS, keys.EMAIL_CODE_TTL_SECONDS
    seconds = {
        Template.REGISTER_ACTIVATION: rt.settings.get(keys.REGISTER_ACTIVATION_TTL_SECONDS),
        Template.CONTACT_CHANGE_CONFIRMATION: rt.settings.get(keys.CONTACT_CHANGE_TTL_SECONDS),
        Template.PASSWORD_RESET: rt.settings.get(keys.PASSWORD_RESET_TTL_SECONDS),
        Template.USER_INVITATION: rt.settings.get(keys.INVITATION_TTL_SECONDS),
        Template.EXTERNAL_AUTH_EMAIL_VERIFICATION: EXTERNAL_SIGN_IN_SECONDS,
        Template.SIGN_IN_CODE: rt.settings.get(code),
        # A code lives no longer than the login flow that waits for it.
        Template.LOGIN_EMAIL_CODE: min(rt.settings.get(code), rt.settings.get(flow)),
        Template.CONFIRMATION_CODE: min(rt.settings.get(code), rt.settings.get(flow)),
    }
    if template not in seconds:
        return {}
    return lifetime_in_words(template, seconds[template], language)
