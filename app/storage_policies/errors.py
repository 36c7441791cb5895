"""Refusals about policy groups."""

from app.core.errors import BadRequest, Conflict, NotFound


class GroupNotFound(NotFound):
    """No group has this id or name."""

    message = "There is no such policy group."


class GroupAmbiguous(Conflict):
    """Several groups have this name."""

    message = "Several policy groups have this name; give the id."


class GroupUnusable(BadRequest):
    """The group is switched off or has no policy."""

    message = "The policy group is disabled or has no policy."
