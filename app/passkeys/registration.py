"""Use cases of registering a passkey.

Invariants: a credential belongs to one account, enforced by a single INSERT; an account has one
user handle for all its passkeys, enforced under its row lock.
"""

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy.orm import Session

from app.audit import service as audit
from app.audit.models import Action, EntityType, Event
from app.core import base64url
from app.core.access import Principal
from app.core.client import Client
from app.core.runtime import Runtime
from app.core.tokens import random_bytes
from app.passkeys import ceremony, credentials, flows, options, queries, relying_party
from app.passkeys.ceremony import NewCredential
from app.passkeys.errors import (
    CredentialTaken,
    FlowInvalid,
    FlowOfAnotherAccount,
    PasskeyNotDiscoverable,
    PasskeyRefused,
)
from app.passkeys.flows import Purpose, StartedCeremony
from app.passkeys.management import Notice, tidy_name
from app.passkeys.models import HANDLE_BYTES, Passkey
from app.sessions import service as sessions
from app.users import notices
from app.users.models import Account


def start(rt: Runtime, principal: Principal, *, name: str | None) -> StartedCeremony:
    """Begin the registration of a passkey.

    Raises: PublicSiteUrlRequired, PublicSiteUrlInvalid, PasskeyNameTooLong, PasskeyNameInvalid;
    AccountDisabled, TokenInvalid if the account or session has just become invalid.
    """
    site = relying_party.current(rt)
    name = tidy_name(name)
    challenge = flows.new_challenge()
    with rt.transaction() as session:
        account = sessions.lock_account(rt, session, principal)
        handle = _handle(session, account)
        known = queries.list_credentials(session, account.id)
    waiting = {
        **_bound_to(account),
        "challenge": challenge,
        "handle": handle,
        "name": name,
        # This id stands for the whole exclude list, which is too long to store for every flow.
        "newest_excluded": known[-1][0] if known else 0,
    }
    public_key = options.creation(
        site,
        account,
        site_name=relying_party.name(rt),
        handle=handle,
        challenge=challenge,
        seconds=flows.life_seconds(rt),
        excluded=[credential_id for _, credential_id in known],
    )
    return StartedCeremony(flows.open_flow(rt, Purpose.REGISTRATION, waiting), public_key)


def finish(
    rt: Runtime,
    principal: Principal,
    *,
    flow_id: str,
    credential: Mapping[str, Any],
    name: str | None,
    client: Client,
) -> Passkey:
    """Add the passkey an authenticator created; the flow is consumed even if that fails.

    Raises, in this order: PublicSiteUrlRequired, PublicSiteUrlInvalid, which leave the flow open;
    FlowInvalid, FlowOfAnotherAccount, CredentialMalformed, PasskeyNotDiscoverable, PasskeyRefused,
    CredentialTaken, PasskeyNameTooLong, PasskeyNameInvalid; AccountDisabled, TokenInvalid and
    FlowInvalid again if the account has changed meanwhile.
    """
    site = relying_party.current(rt)
    flow = flows.take(rt, Purpose.REGISTRATION, flow_id)
    if flow["user_id"] != principal.user_id:
        raise FlowOfAnotherAccount
    _require_unchanged(principal.account, flow)
    made = credentials.attestation(credential)
    if made.is_discoverable is False:
        raise PasskeyNotDiscoverable
    new = ceremony.verify_registration(site, flow["challenge"], made)
    with rt.transaction() as session:
        account = sessions.lock_account(rt, session, principal)
        _require_unchanged(account, flow)
        _require_new(session, new, flow)
        tidy = tidy_name(flow["name"] if name is None else name)
        # The account's last passkey was removed meanwhile; or the account itself was, and SQLite
        # reused its id.
        if queries.find_handle(session, account.id) != flow["handle"]:
            raise FlowInvalid
        return _add(rt, session, account, new, made.transports, tidy, client)


def _handle(session: Session, account: Account) -> str:
    """Return the account's user handle, creating it for its first passkey."""
    handle = queries.find_handle(session, account.id)
    if handle is None:
        handle = base64url.encoded(random_bytes(HANDLE_BYTES))
        queries.add_handle(session, account.id, handle)
    return handle


def _bound_to(account: Account) -> dict[str, Any]:
    """Return what a flow is bound to: ending all sessions, as a new password does, voids it."""
    return {"user_id": account.id, "session_version": account.session_version}


def _require_unchanged(account: Account, flow: Mapping[str, Any]) -> None:
    if any(flow[name] != value for name, value in _bound_to(account).items()):
        raise FlowInvalid


def _require_new(session: Session, new: NewCredential, flow: Mapping[str, Any]) -> None:
    found = queries.find_id(session, new.credential_id)
    if found is None:
        return
    passkey_id, user_id = found
    if user_id == flow["user_id"] and passkey_id <= flow["newest_excluded"]:
        raise PasskeyRefused
    raise CredentialTaken


def _add(
    rt: Runtime,
    session: Session,
    account: Account,
    new: NewCredential,
    transports: list[str] | None,
    name: str,
    client: Client,
) -> Passkey:
    now = rt.clock.now()
    passkey = Passkey(
        user_id=account.id,
        credential_id=new.credential_id,
        public_key=new.public_key,
        name=name,
        transports=None if transports is None else json.dumps(transports),
        sign_count=new.sign_count,
        backup_eligible=new.backup_eligible,
        backed_up=new.backed_up,
        created_at=now,
        updated_at=now,
    )
    queries.add(session, passkey)
    event = Event(
        Action.USER_PASSKEY_REGISTER,
        EntityType.PASSKEY,
        client=client,
        user_id=account.id,
        entity_id=passkey.id,
        entity_name=name,
        details={
            "passkey_id": passkey.id,
            "name": name,
            "backup_eligible": new.backup_eligible,
            "backed_up": new.backed_up,
            "sign_count": new.sign_count,
            "last_used_at": None,
        },
    )
    audit.record(rt, session, event)
    notices.notify_owner(rt, session, account, Notice.ADDED)
    return passkey
