"""Use cases of registering and managing passkeys, available even while passkey login is disabled.

Invariants: a credential belongs to one account, enforced by a single INSERT; an account has one
user handle for all its passkeys, enforced under its row lock.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from fido2 import cbor
from fido2.cose import CoseKey
from fido2.webauthn import (
    PublicKeyCredentialUserEntity,
    RegistrationResponse,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)
from sqlalchemy.orm import Session

from app.audit import service as audit
from app.audit.models import Action, EntityType, Event
from app.core import base64url
from app.core.access import Principal
from app.core.client import Client
from app.core.runtime import Runtime
from app.core.texts import has_controls, parsed_id
from app.crypto.tokens import random_bytes
from app.login import sign_in_methods
from app.login.errors import LastWayIn
from app.passkeys import ceremony, queries, relying_party
from app.passkeys.errors import (
    CredentialMalformed,
    CredentialTaken,
    FlowInvalid,
    FlowOfAnotherAccount,
    PasskeyNameInvalid,
    PasskeyNameTooLong,
    PasskeyNotDiscoverable,
    PasskeyRefused,
)
from app.passkeys.models import HANDLE_BYTES, MAX_NAME_LENGTH, Passkey, PasskeyHandle
from app.passkeys.relying_party import CeremonyPurpose, StartedCeremony
from app.sessions import service as sessions
from app.settings import keys
from app.users import service as users
from app.users.models import Account

DEFAULT_NAME = "Passkey"
MAX_TRANSPORTS = 16
TRANSPORT = re.compile(r"[a-z][a-z0-9-]{0,31}")
EXTENSIONS = {
    "credentialProtectionPolicy": "userVerificationRequired",
    "enforceCredentialProtectionPolicy": False,
    "uvm": True,
    "credProps": True,
}


class Notice(StrEnum):
    """An event to tell the owner of; its value is the sentence in the mail.

    Passkey names are left out, so that a hijacked session cannot put text of its choice into a mail
    from this service.
    """

    ADDED = "A passkey was added. It can be used to sign in without a password."
    REMOVED = "A passkey was removed. It cannot be used to sign in any more."


@dataclass(frozen=True)
class Signal:
    """An account's passkeys as browsers name them; `user_id` is None if there are none."""

    rp_id: str
    user_id: str | None
    name: str
    display_name: str
    accepted: Sequence[str]


def start(rt: Runtime, principal: Principal, *, name: str | None) -> StartedCeremony:
    """Begin the registration of a passkey.

    Raises: errors.START_REGISTRATION; AccountDisabled, TokenInvalid if the account or session has
    just become invalid.
    """
    site = relying_party.current(rt)
    name = _tidy_name(name)
    with rt.transaction() as session:
        account = sessions.lock_account(rt, session, principal)
        handle = queries.find_handle(session, account.id)
        if handle is None:
            handle = base64url.encoded(random_bytes(HANDLE_BYTES))
            session.add(PasskeyHandle(user_id=account.id, handle=handle))
        known = queries.list_credentials(session, account.id)
    user = PublicKeyCredentialUserEntity(
        id=base64url.decoded(handle), name=account.username, display_name=_display_name(account)
    )
    # An authenticator that already holds one of these must not create another.
    excluded = [ceremony.descriptor(credential_id) for _, credential_id in known]
    options, state = site.register_begin(
        user,
        excluded or None,
        ResidentKeyRequirement.REQUIRED,
        UserVerificationRequirement.REQUIRED,
        extensions=EXTENSIONS,
    )
    waiting = {
        **_bound_to(account),
        "challenge": state["challenge"],
        "handle": handle,
        "name": name,
        # This id stands for the whole exclude list, which is too long to store for every flow.
        "newest_excluded": known[-1][0] if known else 0,
    }
    return relying_party.begin(rt, CeremonyPurpose.REGISTRATION, waiting, options)


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
    flow = relying_party.take(rt, CeremonyPurpose.REGISTRATION, flow_id)
    if flow["user_id"] != principal.user_id:
        raise FlowOfAnotherAccount
    _require_unchanged(principal.account, flow)
    made = ceremony.read(RegistrationResponse, credential)
    transports = _transports(credential["response"].get("transports"))
    properties = made.client_extension_results.get("credProps")
    if isinstance(properties, dict) and properties.get("rk") is False:
        raise PasskeyNotDiscoverable
    key = ceremony.verify_registration(site, flow["challenge"], made).public_key
    with rt.transaction() as session:
        account = sessions.lock_account(rt, session, principal)
        _require_unchanged(account, flow)
        _require_new(session, made.id, flow)
        passkey = _passkey(made, key, rt.clock.now())
        passkey.user_id = account.id
        passkey.name = _tidy_name(flow["name"] if name is None else name)
        passkey.transports = transports
        _require_handle(session, account.id, flow)
        queries.add(session, passkey)
        _record(
            rt,
            session,
            Action.USER_PASSKEY_REGISTER,
            account,
            passkey,
            client,
            name=passkey.name,
            sign_count=passkey.sign_count,
            last_used_at=None,
        )
        users.notify_owner(rt, session, account, Notice.ADDED)
    return passkey


def _require_handle(session: Session, user_id: int, flow: Mapping[str, Any]) -> None:
    # Else the account's last passkey was removed meanwhile.
    if queries.find_handle(session, user_id) != flow["handle"]:
        raise FlowInvalid


def _passkey(made: RegistrationResponse, key: CoseKey, now: datetime) -> Passkey:
    """Return what is known of a verified passkey; account, name and transports are missing."""
    data = made.response.attestation_object.auth_data
    return Passkey(
        credential_id=made.id,
        public_key=cbor.encode(key),
        sign_count=data.counter,
        backup_eligible=data.is_backup_eligible(),
        backed_up=data.is_backed_up(),
        created_at=now,
        updated_at=now,
    )


def list_passkeys(rt: Runtime, user_id: int) -> Sequence[Passkey]:
    """Return the passkeys of an account, most recently used first."""
    with rt.reading() as session:
        return queries.list_passkeys(session, user_id)


def signal(rt: Runtime, principal: Principal) -> Signal:
    """Return what a browser is to know of the account's passkeys.

    Raises: errors.SITE.
    """
    site, account = relying_party.current(rt), principal.account
    with rt.reading() as session:
        # In this order: a list that is older than the handle could lack what was made with it.
        handle = queries.find_handle(session, account.id)
        accepted = queries.list_all_credential_ids(session, account.id)
    return Signal(
        rp_id=str(site.rp.id),
        user_id=handle if accepted else None,
        name=account.username,
        display_name=_display_name(account),
        accepted=accepted,
    )


def _display_name(account: Account) -> str:
    """Return what browsers show beside the name of the account."""
    return account.email.partition("@")[0] or account.username


def rename(
    rt: Runtime, principal: Principal, passkey_id: str, *, name: str, client: Client
) -> Passkey:
    """Rename a passkey.

    Raises: PasskeyNotFound, errors.NAME; AccountDisabled, TokenInvalid if the account or session
    has just become invalid.
    """
    with rt.transaction() as session:
        account = sessions.lock_account(rt, session, principal)
        passkey = queries.get_passkey(session, account.id, parsed_id(passkey_id))
        previous_name, passkey.name = passkey.name, _tidy_name(name)
        passkey.updated_at = rt.clock.now()
        _record(
            rt,
            session,
            Action.USER_PASSKEY_RENAME,
            account,
            passkey,
            client,
            previous_name=previous_name,
            next_name=passkey.name,
        )
    return passkey


def remove(rt: Runtime, principal: Principal, passkey_id: str, *, client: Client) -> None:
    """Remove a passkey, unless it is the last way to sign in; sessions continue.

    Raises: PasskeyNotFound, LastWayIn; AccountDisabled, TokenInvalid if the account or session has
    just become invalid.
    """
    can_sign_in = sign_in_methods.by_any_method(rt)
    with rt.transaction() as session:
        account = sessions.lock_account(rt, session, principal)
        passkey = queries.get_passkey(session, account.id, parsed_id(passkey_id))
        queries.remove(session, passkey)
        # Other passkeys suffice even while they cannot be used: passkey login may be enabled again.
        is_last = not queries.has_passkey(session, account.id)
        if is_last and not can_sign_in(session, account.id):
            raise LastWayIn
        _record(
            rt, session, Action.USER_PASSKEY_DELETE, account, passkey, client, name=passkey.name
        )
        users.notify_owner(rt, session, account, Notice.REMOVED)


def by_passkey(rt: Runtime) -> Callable[[Session, int], bool]:
    """Return a predicate for whether an account can sign in with a passkey."""
    is_enabled = rt.settings.get(keys.PASSKEY_LOGIN_ENABLED) and relying_party.is_usable(rt)
    return lambda session, user_id: is_enabled and queries.has_passkey(session, user_id)


def _tidy_name(typed: str | None) -> str:
    """Return the name to store, stripped; DEFAULT_NAME if it is blank or None."""
    name = (typed or "").strip() or DEFAULT_NAME
    if len(name) > MAX_NAME_LENGTH:
        raise PasskeyNameTooLong
    if has_controls(name):
        raise PasskeyNameInvalid
    return name


def _transports(reported: Any) -> str | None:
    """Return the well-formed transports as JSON, deduplicated; only clients interpret them."""
    if reported is None:
        return None
    if not isinstance(reported, list) or not all(isinstance(name, str) for name in reported):
        raise CredentialMalformed
    names = dict.fromkeys(filter(TRANSPORT.fullmatch, reported))
    return json.dumps(list(names)[:MAX_TRANSPORTS])


def _bound_to(account: Account) -> dict[str, Any]:
    """Return what a flow is bound to: ending all sessions, as a new password does, voids it."""
    return {"user_id": account.id, "session_version": account.session_version}


def _require_unchanged(account: Account, flow: Mapping[str, Any]) -> None:
    if any(flow[name] != value for name, value in _bound_to(account).items()):
        raise FlowInvalid


def _require_new(session: Session, credential_id: str, flow: Mapping[str, Any]) -> None:
    found = queries.find_id(session, credential_id)
    if found is None:
        return
    passkey_id, user_id = found
    if user_id == flow["user_id"] and passkey_id <= flow["newest_excluded"]:
        raise PasskeyRefused
    raise CredentialTaken


def _record(
    rt: Runtime,
    session: Session,
    action: Action,
    account: Account,
    passkey: Passkey,
    client: Client,
    **specific: Any,
) -> None:
    details = {
        "passkey_id": passkey.id,
        **specific,
        "backup_eligible": passkey.backup_eligible,
        "backed_up": passkey.backed_up,
    }
    event = Event(
        action,
        EntityType.PASSKEY,
        client=client,
        user_id=account.id,
        entity_id=passkey.id,
        entity_name=passkey.name,
        details=details,
    )
    audit.record(rt, session, event)
