"""Use cases of managing an account's passkeys, available even while passkey login is disabled."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any

from sqlalchemy.orm import Session

from app.audit import service as audit
from app.audit.models import Action, EntityType, Event
from app.core.access import Principal
from app.core.client import Client
from app.core.ids import parsed_id
from app.core.runtime import Runtime
from app.core.texts import has_controls
from app.login import sign_in_methods
from app.login.errors import LastWayIn
from app.passkeys import queries, relying_party
from app.passkeys.errors import PasskeyNameInvalid, PasskeyNameTooLong
from app.passkeys.models import MAX_NAME_LENGTH, Passkey
from app.sessions import service as sessions
from app.settings import keys
from app.users import notices
from app.users.models import Account

DEFAULT_NAME = "Passkey"


class Notice(StrEnum):
    """An event to tell the owner of; its value is the sentence in the mail.

    Passkey names are left out, so that a hijacked session cannot put text of its choice into a mail
    from this service.
    """

    ADDED = "A passkey was added. It can be used to sign in without a password."
    REMOVED = "A passkey was removed. It cannot be used to sign in any more."


def tidy_name(typed: str | None) -> str:
    """Return the name to store, stripped; DEFAULT_NAME if it is blank or None.

    Raises: PasskeyNameTooLong, PasskeyNameInvalid.
    """
    name = (typed or "").strip() or DEFAULT_NAME
    if len(name) > MAX_NAME_LENGTH:
        raise PasskeyNameTooLong
    if has_controls(name):
        raise PasskeyNameInvalid
    return name


def list_passkeys(rt: Runtime, user_id: int) -> Sequence[Passkey]:
    """Return the passkeys of an account, most recently used first."""
    with rt.reading() as session:
        return queries.list_passkeys(session, user_id)


def rename(
    rt: Runtime, principal: Principal, passkey_id: str, *, name: str, client: Client
) -> Passkey:
    """Rename a passkey.

    Raises: PasskeyNotFound, PasskeyNameTooLong, PasskeyNameInvalid; AccountDisabled, TokenInvalid
    if the account or session has just become invalid.
    """
    with rt.transaction() as session:
        account = sessions.lock_account(rt, session, principal)
        passkey = _own(session, account, passkey_id)
        previous_name, passkey.name = passkey.name, tidy_name(name)
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
        passkey = _own(session, account, passkey_id)
        queries.remove(session, passkey)
        # Other passkeys suffice even while they cannot be used: passkey login may be enabled again.
        is_last = not queries.has_passkey(session, account.id)
        if is_last and not can_sign_in(session, account.id):
            raise LastWayIn
        _record(
            rt,
            session,
            Action.USER_PASSKEY_DELETE,
            account,
            passkey,
            client,
            name=passkey.name,
        )
        notices.notify_owner(rt, session, account, Notice.REMOVED)


def by_passkey(rt: Runtime) -> Callable[[Session, int], bool]:
    """Return a predicate for whether an account can sign in with a passkey."""
    is_enabled = rt.settings.get(keys.PASSKEY_LOGIN_ENABLED) and relying_party.is_usable(rt)
    return lambda session, user_id: is_enabled and queries.has_passkey(session, user_id)


def _own(session: Session, account: Account, passkey_id: str) -> Passkey:
    return queries.get_passkey(session, account.id, parsed_id(passkey_id))


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
