"""Accounts: creating and finding them, requirements on them, and their audit records."""

import json
import logging
from collections.abc import Mapping
from datetime import datetime

from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.audit import service as audit
from app.audit.models import Action, EntityType, Event
from app.core.access import (
    AccountDisabled,
    ClosedToTokens,
    Operator,
    PasswordChangeRequired,
    PendingActivation,
    Principal,
    Program,
    TokenInvalid,
)
from app.core.client import Client
from app.core.errors import Unavailable
from app.core.runtime import Runtime, SignInSwitch
from app.core.texts import shortened, typed_reference
from app.crypto.passwords import is_acceptable, is_guessable, normalized
from app.mail import notices
from app.settings import keys
from app.store import locks
from app.store.db import after_commit
from app.store.named import NameAmbiguous
from app.store.redis import ACCOUNTS_CHANNEL, SESSIONS_CHANNEL
from app.users import identifiers, queries
from app.users.errors import (
    EmailBlocked,
    EmailExists,
    EmailNotAllowlisted,
    IdentifierExists,
    PasswordGuessable,
    PasswordInvalid,
    PasswordLeaked,
    UsernameExists,
    UsernameReserved,
    UserNotFound,
)
from app.users.models import Account, Role, Status, User
from app.web import metrics

log = logging.getLogger(__name__)


def require_acceptable(rt: Runtime, password: str, *names: str) -> None:
    """Check a password that is about to be set on the account with these names.

    `names` are its username and e-mail address, as far as they are known.
    Raises: PasswordInvalid; PasswordGuessable, while `auth_password_blocklist_enabled` is on;
    PasswordLeaked, while `auth_password_breach_check` is not off.
    """
    if not is_acceptable(password):
        raise PasswordInvalid
    if rt.settings.get(keys.PASSWORD_BLOCKLIST_ENABLED) and is_guessable(password, names):
        raise PasswordGuessable
    if rt.settings.get(keys.PASSWORD_BREACH_CHECK) != "off" and _is_leaked(rt, password):
        raise PasswordLeaked


def _is_leaked(rt: Runtime, password: str) -> bool:
    """Return whether the list of leaked passwords has it.

    A list that cannot be read counts as empty: nobody may be kept from changing a password.
    """
    leaked = rt.passwords.leaked
    try:
        is_leaked = leaked.has(normalized(password))
    except (OSError, ValueError, Unavailable) as error:
        metrics.LEAK_CHECKS.labels("failed").inc()
        log.error("the list of leaked passwords cannot be used: %s", error)  # noqa: TRY400
        return False
    if leaked.path is not None:
        metrics.LEAK_CHECKS.labels("leaked" if is_leaked else "clean").inc()
    return is_leaked


def record(
    rt: Runtime,
    session: Session,
    action: Action,
    account: Account,
    client: Client,
    details: Mapping[str, object] | None = None,
) -> None:
    """Record in the audit log what the owner of an account did to it, from `client`."""
    event = Event(
        action,
        EntityType.USER,
        client,
        user_id=account.id,
        entity_id=account.id,
        entity_name=account.username,
        details=details,
    )
    audit.record(rt, session, event)


def record_by(
    rt: Runtime,
    session: Session,
    by: Operator,
    action: Action,
    account: Account | User,
    details: Mapping[str, object] | None = None,
) -> None:
    """Record what an operator did to an account.

    Raises: TokenInvalid, AccountDisabled, AdminRequired, if the operator is not one any more.
    """
    about = {"entity_id": account.id, "entity_name": account.username, "details": details}
    audit.record_by(rt, session, by, action, EntityType.USER, **about)


def require_still_active(session: Session, principal: Principal) -> Account:
    """Return the account of a caller as it is now; refuse one that was disabled meanwhile.

    So is one whose sessions were all ended since, say because one was stolen: that changes the
    account's `session_version`. Raises: TokenInvalid, AccountDisabled.
    """
    account = queries.find_account(session, principal.user_id)
    if account is None:
        raise TokenInvalid
    if account.status != Status.ACTIVE:
        raise AccountDisabled
    if account.session_version != principal.account.session_version:
        raise TokenInvalid
    return account


def require_open_to(by: Operator, account: Account) -> None:
    """Refuse a program whatever would change an administrator's account.

    Raises: ClosedToTokens.
    """
    if isinstance(by.principal, Program) and account.role == Role.ADMIN:
        raise ClosedToTokens


def notify_administrators(
    rt: Runtime, session: Session, by: Operator, event: str, *, but: Account | None = None
) -> None:
    """Tell every other active administrator what one has done, once it is committed.

    One stolen session could otherwise shut the others out unseen. `event` says what was done to
    whom, without a full stop; who did it is added. `but` is told in other words.
    """
    for account in _other_administrators(session, by):
        if but is None or account.id != but.id:
            notify_administrator(rt, session, by, account, event)


def notify_administrator(
    rt: Runtime, session: Session, by: Operator, account: Account, event: str
) -> None:
    """Tell one administrator, or somebody who has just been one; `event` as above."""
    values = {"username": account.username, "event": f"{event} {_how(by)}."}
    notices.queue_notice(rt, session, account.email, **values)


def notify_administrators_of_switch(
    rt: Runtime, session: Session, by: Operator, switch: SignInSwitch
) -> None:
    """Notify the others in the same way about a way to sign in, however often it is switched.

    The caller holds the lock SETTINGS.
    """
    for account in _other_administrators(session, by):
        about = {"username": account.username, "how": _how(by)}
        notices.queue_notice_of_switch(rt, session, account.email, switch=switch, **about)


def _other_administrators(session: Session, by: Operator) -> list[Account]:
    return [each for each in queries.list_active_admins(session) if each.id != by.user_id]


def _how(by: Operator) -> str:
    return (
        f"by {by.principal.account.username}"
        if by.principal
        else "by somebody with the command line"
    )


def notify_owner(rt: Runtime, session: Session, account: Account, event: str) -> None:
    """Notify the account's owner by mail, once the current transaction is committed.

    `event` is the sentence in the mail.
    """
    notices.queue_notice(rt, session, account.email, username=account.username, event=event)


def create(session: Session, new: User, now: datetime) -> Account:
    """Insert an account, whose password hash is None if it has no usable password.

    `activated_at` and `email_verified_at` are None while these are still pending.
    Raises: UsernameInvalid, EmailInvalid, errors.NAMES_TAKEN.
    """
    new.username, new.email = identifiers.username(new.username), identifiers.email(new.email)
    new.username_key = identifiers.username_key(new.username)
    new.created_at = new.updated_at = now
    lock_address(session, new.email)
    if queries.is_username_taken(session, new.username_key):
        raise UsernameExists
    require_free_address(session, new.email)
    try:
        session.add(new)
        session.flush()
    except IntegrityError as error:
        raise _duplicate_error(error) from error
    return get(session, new.id)


def reserve_address(session: Session, address: str, *, user_id: int | None = None) -> None:
    """Ensure that no other account has or claims this address until the transaction ends.

    Addresses are in two columns, and a unique constraint does not span them.
    Raises: EmailExists, unless the account is `user_id`.
    """
    lock_address(session, address)
    require_free_address(session, address, user_id=user_id)


def require_free_address(session: Session, address: str, *, user_id: int | None = None) -> None:
    """Check that no other account currently has this address or is changing to it.

    Raises: EmailExists, unless the account is `user_id`.
    """
    if queries.is_email_taken(session, address, except_for=user_id):
        raise EmailExists


def lock_address(session: Session, address: str) -> None:
    """Lock an address against being claimed until the transaction ends."""
    locks.hold_text(session, f"address:{address}")


def require_allowed_address(rt: Runtime, address: str) -> None:
    """Apply the local e-mail policy to a normalised address; the blocklist wins.

    Raises: errors.ADDRESS_REFUSED.
    """
    require_not_blocked(rt, address)
    allowed = rt.settings.get(keys.EMAIL_ALLOWLIST)
    if allowed and not identifiers.is_listed(address, allowed):
        raise EmailNotAllowlisted


def require_not_blocked(rt: Runtime, address: str) -> None:
    """Apply the blocklist alone.

    Raises: EmailBlocked.
    """
    if identifiers.is_listed(address, rt.settings.get(keys.EMAIL_BLOCKLIST)):
        raise EmailBlocked


def require_unreserved(rt: Runtime, name: str) -> None:
    """Refuse a username that people may not choose for themselves.

    It could be mistaken for the operators' own, or for the id of another account.
    Raises: UsernameReserved.
    """
    if is_reserved(rt, name):
        raise UsernameReserved


def is_reserved(rt: Runtime, name: str) -> bool:
    """Return whether only operators may give somebody this username."""
    key = identifiers.username_key(name)
    return key.isdigit() or key in rt.settings.get(keys.RESERVED_USERNAMES)


def require_sign_in_allowed(account: Account) -> None:
    """Refuse an account that may not sign in.

    Raises: AccountDisabled, PendingActivation.
    """
    if account.status != Status.ACTIVE:
        raise AccountDisabled
    require_activated(account)


def require_activated(account: Account) -> None:
    """Refuse an account that is not activated yet.

    Raises: PendingActivation.
    """
    if account.activated_at is None:
        raise PendingActivation


def is_password_change_forced(rt: Runtime, account: Account | User) -> bool:
    """Return whether a password change is forced, which requires that password login is enabled."""
    return account.must_change_password and enforces_password_change(rt)


def enforces_password_change(rt: Runtime) -> bool:
    """Return whether accounts that must change their password may do nothing else."""
    return rt.settings.get(keys.PASSWORD_LOGIN_ENABLED)


def require_usable(rt: Runtime, account: Account) -> None:
    """Refuse an account that may not use the service now.

    Raises: AccountDisabled, PendingActivation, PasswordChangeRequired.
    """
    require_sign_in_allowed(account)
    if is_password_change_forced(rt, account):
        raise PasswordChangeRequired


def get(session: Session, user_id: int) -> Account:
    """Return an account.

    Raises: UserNotFound.
    """
    account = queries.find_account(session, user_id)
    if account is None:
        raise UserNotFound
    return account


def named(session: Session, typed: str | int) -> Account:
    """Return the account whose id, username or e-mail address an operator typed.

    Digits may be an id or a username, `id:` and `name:` before them say which; an `int` is only
    ever an id. Raises: UserNotFound; NameAmbiguous for the id of one account and name of another.
    """
    if isinstance(typed, int):
        return get(session, typed)
    user_id, name = typed_reference(typed)
    found = [
        None if user_id is None else queries.find_account(session, user_id),
        name and queries.find_by_identifier(session, identifiers.identifier(name)),
    ]
    accounts = {account.id: account for account in found if account}
    if not accounts:
        raise UserNotFound(f"There is no user {shortened(typed)}.")
    if len(accounts) > 1:
        raise NameAmbiguous(
            f"{shortened(typed)} is the id of one user and the name of another: "
            f"say id:{user_id} or name:{name}."
        )
    return next(iter(accounts.values()))


def lock_named(session: Session, typed: str | int, *, key_share: bool = False) -> Account:
    """Like `named`, with the account locked until the transaction ends; see `queries.lock`."""
    user_id = named(session, typed).id
    queries.lock(session, user_id, key_share=key_share)
    return get(session, user_id)


def publish_ended_access(rt: Runtime, session: Session, user_id: int) -> None:
    """Tell every process, after the commit, that sessions or tokens of a user have ended.

    For what outlives a request, such as an event stream. The message only names the user whose
    access to recheck: the database alone decides what has ended, so a lost or forged message does
    no harm.
    """
    publish = rt.redis.fail_fast.attempt
    after_commit(session, lambda: publish(lambda r: r.publish(SESSIONS_CHANNEL, str(user_id))))


def announce_end(rt: Runtime, session: Session, user_id: int) -> None:
    """Tell the file side of the product after the commit that an account was deleted."""
    message = json.dumps({"kind": "account.deleted", "user_id": user_id})
    publish = rt.redis.fail_fast.attempt
    after_commit(session, lambda: publish(lambda redis: redis.publish(ACCOUNTS_CHANNEL, message)))


def renew_hash_kinds(rt: Runtime) -> None:
    """Remember the kind of hashes that are made here, and forget those that nobody has any more."""
    own = rt.passwords.own_sample
    with rt.transaction() as session:
        queries.add_hash_kinds(session, {own})
        queries.forget_unused_hash_kinds(session, own)


def _duplicate_error(error: IntegrityError) -> UsernameExists | EmailExists | IdentifierExists:
    """Return the error for the unique column on which a concurrent insert won."""
    # Not PostgreSQL's message: it quotes what was typed, which would be searched too.
    diagnosis = getattr(error.orig, "diag", None)
    complaint = (diagnosis.constraint_name or "") if diagnosis else str(error.orig)
    if "username_key" in complaint:
        return UsernameExists()
    if "email" in complaint:
        return EmailExists()
    return IdentifierExists()
