"""Refusals of the event stream."""

from app.core.errors import BadRequest, RateLimited, Unavailable


class TooManyStreams(RateLimited):
    """The account has as many open streams as it may have."""

    message = "The account has too many open event streams."


class WorkerFull(Unavailable):
    """The worker holds as many streams as it can; another one may have room."""

    message = "Too many event streams are open at the moment."


class EventTooLarge(BadRequest):
    """The event names more than fits in one message; `sync.required` says it in short."""

    message = "The event is too large; publish sync.required instead."
