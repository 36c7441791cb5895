"""Deletion of archived teams once their retention period is over."""

from datetime import timedelta

from app.core.database import bulk
from app.core.runtime import Runtime
from app.settings import keys
from app.teams import queries


def delete_archived(rt: Runtime) -> int:
    """Delete teams archived longer than `team_archive_retention_days` ago; return how many."""
    days = rt.settings.get(keys.TEAM_ARCHIVE_RETENTION_DAYS)
    before = rt.clock.now() - timedelta(days=days)
    return bulk.delete_in_batches(rt, queries.delete_archived, before)
