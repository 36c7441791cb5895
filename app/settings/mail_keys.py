"""The runtime settings of outgoing mail, and of what mails say."""

from dataclasses import dataclass
from functools import partial

from app.core import email_address, mail_text
from app.core.setting_groups import Group
from app.core.setting_kinds import boolean, number, seconds, text
from app.settings.frontend_keys import PRODUCT_TITLE


def _mail_address(text: str) -> str:
    """Return an address that mail can be sent from; empty means none."""
    try:
        return email_address.normalized(text) if text else text
    except ValueError as error:
        raise ValueError(f"must be an e-mail address: {error}") from None


def _helo_name(text: str) -> str:
    """Return what a client of an SMTP server may call itself; empty means the default."""
    return email_address.helo_name(text) if text else text


@dataclass(frozen=True)
class Mail:
    """What a mail is for.

    Without the placeholder that it `needs`, the mail would be useless. Its value is a link or a
    code that grants access to whoever reads it, so it must not be logged. "" for a notice.
    """

    purpose: str
    needs: str = ""


class PlaceholderMissing(ValueError):
    """The HTML of a mail lacks what the mail is sent for."""


def missing_placeholder(name: str, html: str) -> str | None:
    """Return what the HTML of a mail lacks, as it is to be typed; None if nothing, or if blank."""
    needed = MAILS[name].needs
    if not needed or not html.strip() or mail_text.shows(html, needed):
        return None
    return f"{{{{{needed}}}}}"


def _complete_template(name: str, html: str) -> str:
    """Return the HTML of a mail; blank means built-in.

    Raises: PlaceholderMissing.
    """
    if (missing := missing_placeholder(name, html)) is not None:
        raise PlaceholderMissing(
            f"must contain {missing} where it is read, not in a comment: the mail is sent for that"
        )
    return html


MAIL_SMTP_HOST = text(
    Group.MAIL,
    "mail_smtp_host",
    "Host of the SMTP server; if empty, mails become files",
    max_length=255,
    is_guarded=True,
)

MAIL_SMTP_PORT = number(
    Group.MAIL, "mail_smtp_port", "Port of the SMTP server", 587, most=65535, is_guarded=True
)

MAIL_SMTP_USERNAME = text(
    Group.MAIL,
    "mail_smtp_username",
    "User name for the SMTP server; empty means no login",
    max_length=255,
)

MAIL_SMTP_PASSWORD = text(
    Group.MAIL,
    "mail_smtp_password",
    "Password for the SMTP server",
    max_length=1024,
    is_sensitive=True,
)

MAIL_FROM_ADDRESS = text(
    Group.MAIL,
    "mail_from_address",
    "The sender's address; without it no mail leaves by SMTP",
    max_length=255,
    check=_mail_address,
)

MAIL_FROM_NAME = text(
    Group.MAIL, "mail_from_name", "The sender's name", PRODUCT_TITLE, max_length=255
)

MAIL_HELO_NAME = text(
    Group.MAIL,
    "mail_helo_name",
    "What the service calls itself at the SMTP server (EHLO), a host name or an IP address; empty "
    "means the host of public_site_url, or else the sender's domain",
    max_length=255,
    check=_helo_name,
)

MAIL_SECURITY = boolean(
    Group.MAIL,
    "mail_security",
    "Whether SMTP is encrypted (STARTTLS, or TLS on port 465) and the server's certificate checked",
    default=True,
    is_guarded=True,
)

MAIL_DISPATCH_INTERVAL_SECONDS = seconds(
    Group.OUTBOX,
    "mail_outbox_dispatch_interval_secs",
    "How often the outbox is checked for mails to send",
    5,
    most=3600,
)

MAILS = {
    "register_activation": Mail("that asks to activate an account", "verification_url"),
    "contact_change_confirmation": Mail("that asks to confirm a new address", "verification_url"),
    "contact_change_notice": Mail("that tells the old address about the new one"),
    "password_reset": Mail("with the link for a password reset", "reset_url"),
    "password_reset_notice": Mail("about a changed password"),
    "external_auth_email_verification": Mail(
        "that asks to confirm the address of an external sign-in", "verification_url"
    ),
    "login_email_code": Mail("with a login code", "code"),
    "confirmation_code": Mail("with a code to confirm a dangerous change", "code"),
    "security_notice": Mail("about a change to the ways to sign in"),
    "new_sign_in": Mail("about a sign-in with a new browser"),
    "user_invitation": Mail("with an invitation", "invitation_url"),
}

MAIL_TEMPLATE_SUBJECTS = {
    name: text(
        Group.MAIL_TEMPLATES,
        f"mail_template_{name}_subject",
        f"Subject of the mail {mail.purpose}; empty means built-in",
        max_length=255,
    )
    for name, mail in MAILS.items()
}

MAIL_TEMPLATE_HTML = {
    name: text(
        Group.MAIL_TEMPLATES,
        f"mail_template_{name}_html",
        f"HTML of the mail {mail.purpose}; empty means built-in"
        + (f", else it contains {{{{{mail.needs}}}}}" if mail.needs else ""),
        max_length=65_536,
        multiline=True,
        check=partial(_complete_template, name),
    )
    for name, mail in MAILS.items()
}
