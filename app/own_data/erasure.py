"""Deleting an account, and afterwards what the audit log and the outbox say of it.

An account that its owner deletes leaves only its id: housekeeping takes names, addresses and
devices out of the audit log. What an operator deletes stays there until `audit_log_retention_days`
have passed, since operators answer for it.
"""

import json
from datetime import timedelta
from typing import Any

from sqlalchemy.orm import Session

from app.audit import service as audit
from app.audit.models import Action, EntityType, Event
from app.avatars import upkeep as avatars
from app.core.access import Principal
from app.core.clock import SKEW
from app.core.runtime import Runtime
from app.mail import service as mail
from app.mail.templates import Template
from app.mfa import service as mfa
from app.own_data import queries
from app.own_data.activity import IMPERSONAL, members
from app.own_data.errors import AdministratorStays, NotYourUsername
from app.own_data.models import Erasure
from app.sessions import service as sessions
from app.store import bulk
from app.teams import service as teams
from app.users import queries as users_queries
from app.users import service as users
from app.users.models import Account, Role

FAREWELL = "Your account was deleted, with everything that belonged to it."
# By then every request that had read the account before it went has ended.
SETTLES_AFTER = timedelta(minutes=5)
# Parts of the installation, whose names are nobody's.
INSTALLATION = frozenset(
    {
        EntityType.EXTERNAL_AUTH_PROVIDER,
        EntityType.POLICY_GROUP,
        EntityType.STORAGE_POLICY,
        EntityType.SYSTEM_CONFIG,
        EntityType.TEAM,
    }
)
# Entries of teams whose names, or other words, members may have typed.
BY_MEMBERS = frozenset(action for action in Action if action.startswith("team_"))


def delete_own(rt: Runtime, principal: Principal, *, confirm: str) -> None:
    """Delete the caller's account at once; `confirm` is its username.

    Raises: errors.DELETE_ACCOUNT; AccountDisabled, TokenInvalid if the account or session ended
    meanwhile.
    """
    with rt.transaction() as session:
        account = sessions.lock_account(rt, session, principal)
        if confirm.strip().lower() != account.username.lower():
            raise NotYourUsername
        if account.role == Role.ADMIN:
            raise AdministratorStays
        addresses = delete(rt, session, account)
        # Neither name nor address: of the account nothing but the id remains.
        action, user_id = Action.USER_DELETE_ACCOUNT, account.id
        event = Event(action, EntityType.USER, user_id=user_id, entity_id=user_id)
        audit.record(rt, session, event)
        notice, username = Template.SECURITY_NOTICE, account.username
        mail.queue(rt, session, notice, account.email, username=username, event=FAREWELL)
        kept, deleted_at = json.dumps(addresses), rt.clock.now()
        session.add(Erasure(user_id=user_id, addresses=kept, deleted_at=deleted_at))
    clear_up(rt, account.id)


def delete(rt: Runtime, session: Session, account: Account) -> list[str]:
    """Delete a locked account with all that belongs to it; return the addresses that it had.

    The caller calls `clear_up` after the commit. Raises: TeamOwnerUndeletable.
    """
    teams.require_deletable(session, account.id)
    addresses = _addresses(session, account)
    for address in addresses:
        users.lock_address(session, address)
    sessions.revoke_all(rt, session, account.id)  # also notifies open event streams
    queries.remove_invitations(session, account.id, addresses)
    queries.remove_pending_identities(session, account.id, addresses)
    queries.remove_mails(session, addresses)
    users_queries.remove(session, account.id)
    users.announce_end(rt, session, account.id)
    return addresses


def clear_up(rt: Runtime, user_id: int) -> None:
    """Remove the files and flows of a deleted account; what fails is left to expire."""
    avatars.forget(rt, user_id)
    mfa.discard_flows(rt, user_id)


def scrub(rt: Runtime) -> int:
    """Take what names deleted accounts out of the audit log; return from how many entries."""
    with rt.reading() as session:
        now = rt.clock.now()
        waiting = queries.list_erasures(session, before=now - SETTLES_AFTER, after=now + SKEW)
    return sum(_scrub(rt, erasure) for erasure in waiting)


def _scrub(rt: Runtime, erasure: Erasure) -> int:
    addresses = json.loads(erasure.addresses)
    scrubbed, last = 0, 0
    while True:
        with rt.transaction() as session:
            entries = queries.list_traces(
                session, erasure.user_id, addresses, last, bulk.BATCH_ROWS
            )
            if not entries:
                queries.settle(session, erasure, addresses)
                return scrubbed
            queries.replace_entries(session, [_impersonal(entry) for entry in entries])
        scrubbed, last = scrubbed + len(entries), entries[-1].id
        rt.clock.sleep(0)


def _impersonal(entry: Any) -> dict[str, Any]:
    name, details = entry.entity_name, entry.details
    if entry.entity_type not in INSTALLATION or entry.action in BY_MEMBERS:
        kept = members(details, IMPERSONAL | {"member_user_id"})
        name, details = None, json.dumps(kept) if kept else None
    folded = entry.entity_name_folded if name is not None else None
    names = {"entity_name": name, "entity_name_folded": folded}
    return {"id": entry.id, **names, "details": details, "ip_address": None, "user_agent": None}


def _addresses(session: Session, account: Account) -> list[str]:
    """Return the addresses that the account has, is changing to, and had, unless others have them.

    Those it had are known from the audit log. In an order that is the same for everybody.
    """
    recorded = queries.list_previous_addresses(session, account.id)
    found = {account.email, account.pending_email, *(_previous(details) for details in recorded)}
    return sorted(
        address
        for address in found
        if address and not users_queries.is_email_taken(session, address, except_for=account.id)
    )


def _previous(details: str) -> str | None:
    previous = json.loads(details).get("previous_email")
    return previous if isinstance(previous, str) else None
