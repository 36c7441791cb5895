"""Previews of the templates in force, filled with sample values."""

from dataclasses import dataclass

from app.core.runtime import Runtime
from app.mail.durations import duration_in_words, exact_duration, rounded_duration
from app.mail.rendering import (
    Rendered,
    fill,
    site_name,
    template_text,
    unknown_placeholders,
    variables,
)
from app.mail.templates import DESCRIPTIONS, LANGUAGE, Template
from app.settings import keys
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
    "lang": LANGUAGE,
}
# The link that proves a mailbox lives as long as the sign-in that waits for it.
EXTERNAL_SIGN_IN_SECONDS = 1800


@dataclass(frozen=True)
class Preview:
    """A template filled with sample values; `unknown` lists placeholders without a value."""

    rendered: Rendered
    unknown: list[str]


def preview(rt: Runtime, template: Template) -> Preview:
    """Render the template in force with sample values."""
    known = DESCRIPTIONS[template]
    samples = {
        **SAMPLES,
        "site_name": site_name(rt),
        "invitation_url": site.link(rt, "/invite/SAMPLE-TOKEN"),
        **_lives(rt, template),
    }
    values = variables(rt, template, {name: samples[name] for name in known.stored})
    rendered = fill(template_text(rt, template), values)
    return Preview(rendered, unknown_placeholders(rendered))


def _lives(rt: Runtime, template: Template) -> dict[str, str]:
    """Return the lifetimes, in words, that the mail would state if it were sent now."""
    seconds = {
        Template.REGISTER_ACTIVATION: rt.settings.get(keys.REGISTER_ACTIVATION_TTL_SECONDS),
        Template.CONTACT_CHANGE_CONFIRMATION: rt.settings.get(keys.CONTACT_CHANGE_TTL_SECONDS),
        Template.PASSWORD_RESET: rt.settings.get(keys.PASSWORD_RESET_TTL_SECONDS),
        Template.USER_INVITATION: rt.settings.get(keys.INVITATION_TTL_SECONDS),
        Template.EXTERNAL_AUTH_EMAIL_VERIFICATION: EXTERNAL_SIGN_IN_SECONDS,
    }
    if template is Template.LOGIN_EMAIL_CODE:
        # A code lives no longer than the login flow that waits for it.
        own, login = keys.EMAIL_CODE_TTL_SECONDS, keys.MFA_FLOW_TTL_SECONDS
        life = min(rt.settings.get(own), rt.settings.get(login))
        return {"expires_in": exact_duration(life), "good_for": rounded_duration(life)}
    return {"expires_in": duration_in_words(seconds[template])} if template in seconds else {}
