"""Errors of access tokens; those of the access check are in app/core/access.py."""

from app.core.access import AdminRequired
from app.core.errors import BadRequest, Conflict, NotFound


class AccessTokenNotFound(NotFound):
    """The account has no such token."""

    message = "There is no such token."


class TokenNameInvalid(BadRequest):
    """The name is empty or too long, or has characters that cannot be shown."""

    message = "A token's name has 1 to 64 characters, and no control characters."


class TokenLifeInvalid(BadRequest):
    """The token would live longer than the settings allow; the message says how long that is."""

    message = "expires_in_days is more than the settings allow."


class TokenNameTaken(Conflict):
    """Another token of the account has this name."""

    message = "There is already a token with this name."


class TooManyTokens(Conflict):
    """The account has as many tokens as it may have."""

    message = "There are already 50 tokens; remove one first."


NAME = (TokenNameInvalid, TokenNameTaken)
CREATE = (*NAME, TokenLifeInvalid, TooManyTokens, AdminRequired)
RENAME = (AccessTokenNotFound, *NAME)
