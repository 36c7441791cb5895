"""Errors of accounts, usernames and e-mail addresses."""

from app.core.access import PendingActivation
from app.core.errors import BadRequest, ErrorCode, NotFound


class UsernameInvalid(BadRequest):
    """The username is too short, too long or has a forbidden character."""

    message = "A username has 2 to 64 letters, digits, dots, hyphens or underscores."


class EmailInvalid(BadRequest):
    """The text is not an e-mail address, or not one that mail can be sent to from here."""

    message = (
        "An e-mail address looks like ada@example.com: unaccented letters, digits, dots and signs "
        "such as + and - before the @, and after it a domain without other signs than hyphens."
    )


class PasswordInvalid(BadRequest):
    """The new password is too short or too long."""

    message = "A password has 8 to 128 characters."


class PasswordGuessable(PasswordInvalid):
    """The new password is a common one, or the account's own name or address."""

    message = "This password is too easy to guess. Please choose another one."


class PasswordLeaked(PasswordInvalid):
    """The new password is in the operator's list of leaked ones."""

    message = "This password is known from leaks of other services. Please choose another one."


class UsernameReserved(BadRequest):
    """Only an operator can give somebody this username."""

    message = "This username cannot be chosen."


class UsernameExists(BadRequest):
    """Another account has this username, ignoring case."""

    code = ErrorCode.AUTH_USERNAME_EXISTS
    message = "This username is taken."


class EmailExists(BadRequest):
    """Another account has this address, or is changing to it."""

    code = ErrorCode.AUTH_EMAIL_EXISTS
    message = "This e-mail address is taken."


class EmailBlocked(BadRequest):
    """The local e-mail policy refuses this address or its domain."""

    code = ErrorCode.AUTH_EMAIL_BLOCKED
    message = "This e-mail address cannot be used here."


class EmailNotAllowlisted(BadRequest):
    """The local e-mail policy has an allowlist, and this address is not on it."""

    code = ErrorCode.AUTH_EMAIL_NOT_ALLOWLISTED
    message = "This e-mail address cannot be used here."


class IdentifierExists(BadRequest):
    """A concurrent request took the username or the address."""

    code = ErrorCode.AUTH_IDENTIFIER_EXISTS
    message = "The username or the e-mail address is taken."


class UserNotFound(NotFound):
    """No account has this id, username or address."""

    message = "There is no such user."


class AddressUnproven(PendingActivation):
    """Nobody has acted from the account's mailbox yet, except perhaps a mail scanner."""

    message = (
        "Nobody has confirmed this account from its mailbox in person. Whoever reads the mail "
        "there can take the account over with “forgot password”."
    )


NEW_PASSWORD = (PasswordInvalid, PasswordGuessable, PasswordLeaked)
NEW_ACCOUNT = (UsernameInvalid, EmailInvalid, *NEW_PASSWORD)
NAMES_TAKEN = (UsernameExists, EmailExists, IdentifierExists)
ADDRESS_REFUSED = (EmailBlocked, EmailNotAllowlisted)
