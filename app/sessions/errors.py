"""Errors of sessions and their tokens; those of the access check are in app/core/access.py."""

from app.core.access import (
    AccountDisabled,
    PasswordChangeRequired,
    TokenExpired,
    TokenInvalid,
    TokenMissing,
)
from app.core.errors import ErrorCode, Forbidden, NotFound, Unauthenticated


class RefreshTokenStale(Unauthenticated):
    """Another refresh came first, at the same moment or within the grace period."""

    code = ErrorCode.AUTH_REFRESH_TOKEN_STALE
    message = "The refresh token was just exchanged by another request."


class RefreshTokenReused(Unauthenticated):
    """A used refresh token was sent again; every session of the user was ended."""

    code = ErrorCode.AUTH_REFRESH_TOKEN_REUSE_DETECTED
    message = "The refresh token had already been used. All sessions were ended."


class SessionUserMismatch(Forbidden):
    """The refresh cookie and the access token belong to different accounts."""

    code = ErrorCode.AUTH_SESSION_USER_MISMATCH
    message = "The session belongs to another user."


class SessionNotFound(NotFound):
    """No session of this user has this id."""

    message = "There is no such session."


REFRESH = (
    TokenMissing,
    TokenInvalid,
    TokenExpired,
    AccountDisabled,
    PasswordChangeRequired,
    RefreshTokenStale,
    RefreshTokenReused,
)
REVOKE_OTHERS = (TokenMissing, SessionUserMismatch)
