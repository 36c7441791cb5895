"""Errors of sessions and their tokens; those of the access check are in app/core/access.py."""

from app.core.access import (
    AccountDisabled,
    PasswordChangeRequired,
    SessionUserMismatch,
    TokenExpired,
    TokenInvalid,
    TokenMissing,
)
from app.core.errors import ErrorCode, NotFound, Unauthenticated


class RefreshTokenStale(Unauthenticated):
    """Another refresh came first, at the same moment or within the grace period."""

    code = ErrorCode.AUTH_REFRESH_TOKEN_STALE
    message = "The refresh token was just exchanged by another request."


class RefreshTokenReused(Unauthenticated):
    """A used refresh token was sent again; every session of the user was ended."""

    code = ErrorCode.AUTH_REFRESH_TOKEN_REUSE_DETECTED
    message = "The refresh token had already been used. All sessions were ended."


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
