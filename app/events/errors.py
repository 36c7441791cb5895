"""Errors of the event streams."""

from app.core.errors import BadRequest, DatabaseUnavailable, RateLimited, Unavailable


class TooManyStreams(RateLimited):
    """The account has reached its limit of open streams."""

    message = "The account has too many open event streams."


class WorkerFull(Unavailable):
    """The worker has reached its limit of open streams; another one may have room."""

    message = "Too many event streams are open at the moment."


class EventTooLarge(BadRequest):
    """The event names more items than fit into one message; `sync.required` covers them all."""

    message = "The event is too large; publish sync.required instead."


STREAM = (TooManyStreams, WorkerFull, DatabaseUnavailable)
