"""Use cases of public registration."""

from datetime import datetime, timedelta

from sqlalchemy.orm import Session

from app.audit.models import Action
from app.contact_verification import queries as contact_queries
from app.contact_verification import tokens
from app.contact_verification.models import LinkPurpose
from app.core.client import Client
from app.core.runtime import Runtime
from app.login import sign_in_methods
from app.mail import service as mail
from app.registration import queries
from app.registration.errors import RegistrationDisabled
from app.settings import keys
from app.setup import service as setup
from app.setup.errors import SystemNotInitialized
from app.storage_policies import queries as storage_queries
from app.store import bulk
from app.users import identifiers
from app.users import queries as users_queries
from app.users import service as users
from app.users.errors import (
    EmailBlocked,
    EmailInvalid,
)
from app.users.models import Account, Status, User


def register(
    rt: Runtime, *, username: str, email: str, password: str, client: Client, browser: str
) -> Account:
    """Create an ordinary account, pending activation if that is required.

    Raises the first that applies, in this order: SystemNotInitialized, PasswordLoginDisabled,
    RegistrationDisabled, EmailBlocked, EmailNotAllowlisted, PasswordInvalid, UsernameInvalid,
    UsernameReserved, EmailInvalid, UsernameExists, EmailExists, IdentifierExists.
    """
    setup.require_ready_now(rt)
    _require_open(rt)
    address = _allowed_address(rt, email)
    users.require_acceptable(rt, password, username, email)
    name = identifiers.username(username)
    users.require_unreserved(rt, name)
    if address is None:
        raise EmailInvalid
    password_hash = rt.passwords.hash(password)
    now = rt.clock.now()
    new = User(
        username=name,
        email=address,
        password_hash=password_hash,
        activated_at=None if is_activation_needed(rt) else now,
        storage_quota=rt.settings.get(keys.DEFAULT_STORAGE_QUOTA),
    )
    with rt.transaction() as session:
        # The set-up state is not locked: an ordinary account never changes it, and leaving READY
        # right now is no different from leaving it just afterwards.
        group_id = storage_queries.find_default_group_id(session)
        if group_id is None:
            raise SystemNotInitialized
        new.policy_group_id = group_id
        # Who mistyped an address, or took somebody else's, keeps it from nobody.
        key = identifiers.username_key(name)
        for user_id in queries.remove_abandoned(session, _times(rt), name_key=key, address=address):
            users.announce_end(rt, session, user_id)
        account = users.create(session, new, now)
        if account.activated_at is None:
            tokens.send(rt, session, account, LinkPurpose.REGISTER_ACTIVATION, address, browser)
        users.record(rt, session, Action.USER_REGISTER, account, client)
    return account


def resend_activation(rt: Runtime, *, identifier: str, client: Client) -> None:
    """Send the activation mail again to an account that is pending activation.

    Nothing reveals whether one was sent: unknown, disabled, activated and blocked accounts, and
    those mailed within the cooldown, are skipped silently.
    Raises: errors.RESEND.
    """
    sign_in_methods.require_password_login(rt)
    with rt.reading() as session:
        who = identifiers.identifier(identifier)
        account = users_queries.find_by_identifier(session, who)
    if account is None or not _is_pending_activation(account) or _is_blocked(rt, account.email):
        return
    purpose, address = LinkPurpose.REGISTER_ACTIVATION, account.email
    if tokens.seconds_to_wait(rt, account.id, purpose, address):
        return
    with rt.transaction() as session:
        account = users_queries.lock_and_find(session, account.id)
        if account is None or not _is_pending_activation(account) or account.email != address:
            return
        # Who asks for it again need not be who chose the password: that browser still counts.
        last = contact_queries.find_last(session, account.id, purpose)
        browser = last.browser_digest if last else None
        if tokens.send(rt, session, account, purpose, address, browser):
            users.record(rt, session, Action.USER_RESEND_REGISTRATION, account, client)


def delete_abandoned(rt: Runtime) -> int:
    """Delete the accounts that have waited for activation for too long; return how many."""
    times = _times(rt)

    def delete_some(session: Session, _: datetime, most: int) -> int:
        gone = queries.delete_abandoned(session, times, most)
        for user_id in gone:
            users.announce_end(rt, session, user_id)
        return len(gone)

    return bulk.delete_in_batches(rt, delete_some, times.due)


def _times(rt: Runtime) -> queries.Times:
    now, kept = rt.clock.now(), timedelta(days=rt.settings.get(keys.UNACTIVATED_KEEP_DAYS))
    link = timedelta(seconds=tokens.longest_life(rt))
    return queries.Times(now, now - kept, now - kept - link)


def is_activation_needed(rt: Runtime) -> bool:
    """Return whether a new account must prove its address; `auto` means if SMTP is configured."""
    choice = rt.settings.get(keys.REGISTER_ACTIVATION)
    return choice == "true" or (choice == "auto" and mail.is_smtp_configured(rt))


def _require_open(rt: Runtime) -> None:
    sign_in_methods.require_password_login(rt)
    if not rt.settings.get(keys.ALLOW_USER_REGISTRATION):
        raise RegistrationDisabled


def _allowed_address(rt: Runtime, typed: str) -> str | None:
    """Apply the e-mail policy, which precedes all checks of form; return the address to store.

    None if `typed` is no address: no list can contain it, and `register` refuses it in its turn.
    """
    try:
        address = identifiers.email(typed)
    except EmailInvalid:
        return None
    users.require_allowed_address(rt, address)
    return address


def _is_pending_activation(account: Account) -> bool:
    """Return whether an account is pending activation."""
    return account.status == Status.ACTIVE and account.activated_at is None


def _is_blocked(rt: Runtime, address: str) -> bool:
    try:
        users.require_not_blocked(rt, address)
    except EmailBlocked:
        return True
    return False
