"""Which mails there are, and what each is told (spec 01 §9)."""

from enum import StrEnum


class Template(StrEnum):
    """A mail's kind; its value is part of the names of the settings that override it."""

    REGISTER_ACTIVATION = "register_activation"
    CONTACT_CHANGE_CONFIRMATION = "contact_change_confirmation"
    CONTACT_CHANGE_NOTICE = "contact_change_notice"
    PASSWORD_RESET = "password_reset"
    PASSWORD_RESET_NOTICE = "password_reset_notice"
    EXTERNAL_AUTH_EMAIL_VERIFICATION = "external_auth_email_verification"
    LOGIN_EMAIL_CODE = "login_email_code"
    USER_INVITATION = "user_invitation"
