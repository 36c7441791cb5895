"""Errors of known browsers."""

from app.core.errors import NotFound


class BrowserNotFound(NotFound):
    """No remembered browser of this account has this id."""

    message = "There is no such remembered browser."


class NotRemembered(Exception):
    """A browser that was remembered is not any more; never leaves the sign-in."""
