"""The syntax of e-mail addresses, checked by the email-validator library."""

import email_validator

MAX_EMAIL_LENGTH = 254

# Reserved names such as `.test` and `.local` are in daily use inside private networks.
email_validator.SPECIAL_USE_DOMAIN_NAMES.clear()


def normalized(typed: str) -> str:
    """Return the address in lower case, with an internationalised domain in Punycode.

    Raises: ValueError, also for a local part outside ASCII and for a domain without a dot.
    """
    try:
        address = email_validator.validate_email(
            typed.strip(),
            check_deliverability=False,
            globally_deliverable=False,
            allow_smtputf8=False,
            strict=True,
        ).ascii_email
    except email_validator.EmailNotValidError as error:
        raise ValueError(str(error)) from None
    domain = (address or "").rpartition("@")[2]
    if address is None or len(address) > MAX_EMAIL_LENGTH or "." not in domain:
        raise ValueError("The address is too long, or its domain has no dot.")
    return address.lower()
