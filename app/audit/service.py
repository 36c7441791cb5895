"""Writing the audit log, and deleting entries past their retention period."""

import json
import logging
from datetime import timedelta
from typing import Any

from sqlalchemy.orm import Session

from app.audit import keys, queries
from app.audit.models import Action, EntityType, Event
from app.core.access import Operator
from app.core.client import Client
from app.core.runtime import Runtime
from app.store import bulk
from app.store.database import DATABASE_ERRORS, reason_of

log = logging.getLogger(__name__)

MAX_ENTITY_NAME_LENGTH = 255


def record(rt: Runtime, session: Session, event: Event) -> None:
    """Record an event in the current transaction, unless the settings exclude its action."""
    recorded = rt.settings.get(keys.RECORDED_ACTIONS)
    if not rt.settings.get(keys.ENABLED) or event.action not in recorded:
        return
    client = event.client or Client()
    name, details = event.entity_name, event.details
    if client.token_id is not None:
        details = {**(details or {}), "token_id": client.token_id}
    queries.add(
        session,
        user_id=event.user_id,
        action=event.action,
        entity_type=event.entity_type,
        entity_id=event.entity_id,
        entity_name=name[:MAX_ENTITY_NAME_LENGTH] if name else None,
        details=json.dumps(details, ensure_ascii=False) if details is not None else None,
        ip_address=client.address,
        user_agent=client.user_agent,
        created_at=rt.clock.now(),
    )


def record_by(
    rt: Runtime,
    session: Session,
    by: Operator,
    action: Action,
    entity_type: EntityType,
    **about: Any,
) -> None:
    """Record what an operator did, who must still be an administrator; `about` as in `Event`.

    Raises: TokenInvalid, AccountDisabled, AdminRequired.
    """
    by.recheck(session)
    record(rt, session, Event(action, entity_type, by.client, user_id=by.user_id or 0, **about))


def record_action(
    rt: Runtime,
    session: Session,
    by: Operator,
    what: EntityType,
    on: str,
    action: str,
    **details: object,
) -> None:
    """Record what an operator had the service do, such as a clean-up; otherwise as `record_by`."""
    about = {"entity_name": on, "details": {"action": action, **details}}
    record_by(rt, session, by, Action.CONFIG_ACTION_EXECUTE, what, **about)


def record_best_effort(rt: Runtime, event: Event) -> None:
    """Record an event that changes nothing else; failing to do so is only logged."""
    try:
        with rt.transaction() as session:
            record(rt, session, event)
    except DATABASE_ERRORS as error:
        log.warning("%s could not be recorded: %s", event.action, reason_of(error))


def record_server_event(rt: Runtime, action: Action) -> None:
    """Record that a server has started or stopped."""
    record_best_effort(rt, Event(action, EntityType.SYSTEM_CONFIG))


def delete_outdated(rt: Runtime) -> int:
    """Delete entries past `audit_log_retention_days`; return how many.

    0 days or less keeps them for ever.
    """
    days = rt.settings.get(keys.RETENTION_DAYS)
    if days <= 0:
        return 0
    before = rt.clock.now() - timedelta(days=days)
    return bulk.delete_in_batches(rt, queries.delete_older, before)
