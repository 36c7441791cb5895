"""Recording the audit log, and forgetting what is outdated."""

import json
import logging
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from sqlalchemy.orm import Session

from app.audit import keys, queries
from app.audit.models import Action, EntityType
from app.core import bulk
from app.core.client import Client
from app.core.db import DATABASE_AWAY
from app.core.runtime import Runtime

log = logging.getLogger(__name__)

LONGEST_NAME = 255


def record(
    rt: Runtime,
    session: Session,
    action: Action,
    entity_type: EntityType,
    *,
    client: Client | None = None,
    user_id: int = 0,
    entity_id: int | None = None,
    entity_name: str | None = None,
    details: Mapping[str, Any] | None = None,
) -> None:
    """Add an entry to the running transaction, unless this action is not recorded.

    `client` is None for the command line. `details` must hold no secret.
    """
    columns = entry(
        rt,
        action,
        entity_type,
        client=client,
        user_id=user_id,
        entity_id=entity_id,
        entity_name=entity_name,
        details=details,
    )
    if columns is not None:
        queries.add(session, **columns)


def entry(
    rt: Runtime,
    action: Action,
    entity_type: EntityType,
    *,
    client: Client | None = None,
    user_id: int = 0,
    entity_id: int | None = None,
    entity_name: str | None = None,
    details: Mapping[str, Any] | None = None,
) -> dict[str, Any] | None:
    """Return the columns of an entry, for `record` or `add_if`; None if it is not recorded."""
    if not rt.settings.get(keys.ENABLED) or action not in rt.settings.get(keys.RECORDED_ACTIONS):
        return None
    client = client or Client()
    return {
        "user_id": user_id,
        "action": action,
        "entity_type": entity_type,
        "entity_id": entity_id,
        "entity_name": entity_name[:LONGEST_NAME] if entity_name else None,
        "details": json.dumps(details, ensure_ascii=False) if details is not None else None,
        "ip_address": client.address,
        "user_agent": client.user_agent,
        "created_at": rt.clock.now(),
    }


def record_server_event(rt: Runtime, action: Action) -> None:
    """Record the start or the stop of a server; one that cannot be recorded does not prevent it."""
    try:
        with rt.transaction() as session:
            record(rt, session, action, EntityType.SYSTEM_CONFIG)
    except DATABASE_AWAY:
        log.warning("%s could not be recorded: the database does not answer", action)


def delete_outdated(rt: Runtime) -> int:
    """Delete entries past `audit_log_retention_days`; return how many.

    0 days or less keep them for ever.
    """
    days = rt.settings.get(keys.RETENTION_DAYS)
    if days <= 0:
        return 0
    before = rt.clock.now() - timedelta(days=days)
    return bulk.delete_in_batches(
        rt, lambda session, most: queries.delete_older(session, before, most)
    )
