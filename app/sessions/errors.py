"""Refusals about sessions and their tokens; those of the access check are in app/core/access.py."""

from app.core.error_codes import ErrorCode
from app.core.errors import Forbidden, NotFound, Unauthenticated


class RefreshTokenStale(Unauthenticated):
    """A simultaneous refresh was faster, or a moment ahead within the grace period."""

    code = ErrorCode.AUTH_REFRESH_TOKEN_STALE
    message = "The refresh token was just exchanged by another request."


class RefreshTokenReused(Unauthenticated):
    """A spent refresh token came back; every session of the user was ended."""

    code = ErrorCode.AUTH_REFRESH_TOKEN_REUSE_DETECTED
    message = "The refresh token was used before. All sessions were ended."


class SessionUserMismatch(Forbidden):
    """The refresh cookie belongs to another account than the access token."""

    code = ErrorCode.AUTH_SESSION_USER_MISMATCH
    message = "The session belongs to another user."


class SessionNotFound(NotFound):
    """No session of this user has this id."""

    message = "There is no such session."
