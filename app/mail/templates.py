"""The mail templates and the variables of each."""

from dataclasses import dataclass
from enum import StrEnum


class Template(StrEnum):
    """The kind of a mail; the value is part of the names of the settings that override it."""

    REGISTER_ACTIVATION = "register_activation"
    CONTACT_CHANGE_CONFIRMATION = "contact_change_confirmation"
    CONTACT_CHANGE_NOTICE = "contact_change_notice"
    PASSWORD_RESET = "password_reset"
    PASSWORD_RESET_NOTICE = "password_reset_notice"
    EXTERNAL_AUTH_EMAIL_VERIFICATION = "external_auth_email_verification"
    LOGIN_EMAIL_CODE = "login_email_code"
    SIGN_IN_CODE = "sign_in_code"
    CONFIRMATION_CODE = "confirmation_code"
    SECURITY_NOTICE = "security_notice"
    NEW_SIGN_IN = "new_sign_in"
    USER_INVITATION = "user_invitation"


@dataclass(frozen=True)
class Link:
    """How a stored `token` becomes a link: the variable to fill, and the path to append it to."""

    variable: str
    path: str


@dataclass(frozen=True)
class Description:
    """The variables that a template knows.

    `names_recipient`: the To header carries the username.
    """

    variables: tuple[str, ...]
    link: Link | None = None
    names_recipient: bool = False

    @property
    def stored(self) -> frozenset[str]:
        """Return the names of the values a mail is queued with, including `site_name`."""
        if self.link is None:
            return frozenset(self.variables)
        return frozenset(self.variables) - {self.link.variable} | {"token"}


VERIFY = "/api/v1/auth/contact-verification/confirm?token="
VERIFY_EXTERNAL = "/api/v1/auth/external-auth/email-verification/confirm?token="
RESET = "/reset-password?token="

DESCRIPTIONS: dict[Template, Description] = {
    Template.REGISTER_ACTIVATION: Description(
        ("username", "verification_url", "site_name", "expires_in"),
        Link("verification_url", VERIFY),
    ),
    Template.CONTACT_CHANGE_CONFIRMATION: Description(
        ("username", "verification_url", "site_name", "expires_in"),
        Link("verification_url", VERIFY),
    ),
    Template.CONTACT_CHANGE_NOTICE: Description(
        ("username", "previous_email", "new_email", "site_name"),
    ),
    Template.PASSWORD_RESET: Description(
        ("username", "reset_url", "site_name", "expires_in"),
        Link("reset_url", RESET),
    ),
    Template.PASSWORD_RESET_NOTICE: Description(
        ("username", "site_name"),
    ),
    Template.EXTERNAL_AUTH_EMAIL_VERIFICATION: Description(
        ("email", "verification_url", "provider_name", "site_name", "expires_in"),
        Link("verification_url", VERIFY_EXTERNAL),
    ),
    Template.LOGIN_EMAIL_CODE: Description(
        ("username", "code", "site_name", "expires_in", "lang", "good_for"),
        names_recipient=True,
    ),
    Template.SIGN_IN_CODE: Description(
        ("username", "code", "site_name", "expires_in", "lang", "good_for"),
        names_recipient=True,
    ),
    Template.CONFIRMATION_CODE: Description(
        ("username", "code", "site_name", "expires_in", "lang", "good_for"),
        names_recipient=True,
    ),
    Template.SECURITY_NOTICE: Description(
        ("username", "event", "site_name"),
    ),
    Template.NEW_SIGN_IN: Description(
        (
            *("username", "signed_in_at", "browser", "ip_address", "method"),
            *("security_url", "site_name"),
        ),
    ),
    Template.USER_INVITATION: Description(
        ("email", "invitation_url", "site_name", "expires_in"),
    ),
}
