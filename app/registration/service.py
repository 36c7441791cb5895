"""Use cases of public registration."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy.exc import IntegrityError

from app.audit import service as audit
from app.audit.models import Action, EntityType, Event
from app.contact_verification import tokens
from app.contact_verification.models import Purpose
from app.core.client import Client
from app.core.errors import AppError
from app.core.runtime import Runtime
from app.login import sign_in_methods
from app.mail import service as mail
from app.registration import queries
from app.registration.errors import RegistrationDisabled
from app.settings import keys
from app.setup import service as setup
from app.setup.errors import SystemNotInitialized
from app.storage_policies import queries as storage_queries
from app.users import identifiers
from app.users import queries as users_queries
from app.users import service as users
from app.users.errors import (
    EmailBlocked,
    EmailExists,
    EmailInvalid,
    IdentifierExists,
    UsernameExists,
)
from app.users.models import Account, Status


def register(rt: Runtime, *, username: str, email: str, password: str, client: Client) -> Account:
    """Create an ordinary account, pending activation if that is required (decision A5).

    Raises the first that applies, in this order: SystemNotInitialized, PasswordLoginDisabled,
    RegistrationDisabled, EmailBlocked, EmailNotAllowlisted, PasswordInvalid, UsernameInvalid,
    EmailInvalid, UsernameExists, EmailExists, IdentifierExists.
    Source: spec 01 §4; decision A24.
    """
    setup.require_ready_now(rt)
    _require_open(rt)
    address = _allowed_address(rt, email)
    users.require_acceptable(rt, password, username, email)
    name = identifiers.username(username)
    if address is None:
        raise EmailInvalid
    password_hash = rt.passwords.hash(password)
    now = rt.clock.now()
    new = users.NewUser(
        username=name,
        email=address,
        password_hash=password_hash,
        activated_at=None if is_activation_needed(rt) else now,
        storage_quota=rt.settings.get(keys.DEFAULT_STORAGE_QUOTA),
    )
    return _add(rt, users.new_account_columns(new, name, address, now), client)


def resend_activation(rt: Runtime, *, identifier: str, client: Client) -> None:
    """Send the activation mail again to an account that is pending activation.

    Nothing reveals whether one was sent: unknown, disabled, activated and blocked accounts, and
    those mailed within the cooldown, are skipped silently.
    Raises: PasswordLoginDisabled. Source: spec 01 §4.
    """
    sign_in_methods.require_password_login(rt)
    account = users_queries.look_up_identifier(rt.database, identifiers.identifier(identifier))
    if account is None or not _is_pending_activation(account) or _is_blocked(rt, account.email):
        return
    purpose, address = Purpose.REGISTER_ACTIVATION, account.email
    if tokens.seconds_to_wait(rt, account.id, purpose, address):
        return
    statement = queries.STORE_FOR_PENDING
    token_mail = tokens.prepare_token_mail(
        rt, purpose, address, account.username, statement, account_id=account.id
    )
    entry = users.entry(rt, Action.USER_RESEND_REGISTRATION, account, client)
    if rt.database.change_together(
        token_mail.store, *token_mail.entry_steps(entry), token_mail.send
    ):
        mail.wake(rt)


def is_activation_needed(rt: Runtime) -> bool:
    """Return whether a new account must prove its address; `auto` means if SMTP is configured.

    Source: decision A5.
    """
    wanted = rt.settings.get(keys.REGISTER_ACTIVATION)
    return wanted == "true" or (wanted == "auto" and mail.is_smtp_configured(rt))


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


def _add(rt: Runtime, columns: Mapping[str, Any], client: Client) -> Account:
    """Insert an account with its mail and its audit entry in one transaction.

    Raises: SystemNotInitialized, UsernameExists, EmailExists, IdentifierExists.
    """
    username, address = columns["username"], columns["email"]
    event = Event(Action.USER_REGISTER, EntityType.USER, client=client, entity_name=username)
    entry = audit.entry(rt, event)
    # The set-up state is not locked: an ordinary account never changes it, and leaving READY
    # right now is no different from leaving it just afterwards.
    steps = [*users.lock_address_steps(rt, address), queries.add_step(columns)]
    if columns["activated_at"] is None:
        statement, identifying = queries.STORE_FOR_NEW, queries.identifying_columns(columns)
        token_mail = tokens.prepare_token_mail(
            rt, Purpose.REGISTER_ACTIVATION, address, username, statement, **identifying
        )
        steps += [token_mail.store, token_mail.send]
    steps += queries.entry_steps(columns, entry)
    try:
        account = queries.add(rt.database, steps, columns)
    except IntegrityError:
        account = None  # lost the race to a concurrent insert
    if account is None:
        raise _registration_error(rt, username, address)
    if account.activated_at is None:
        mail.wake(rt)
    return account


def _registration_error(rt: Runtime, username: str, address: str) -> AppError:
    """Return the error for an account that was not added, as far as the cause still shows."""
    with rt.reading() as connection:
        if storage_queries.find_default_group_id(connection) is None:
            return SystemNotInitialized()
        has_username, has_email = users_queries.check_taken(connection, username, address)
    if has_username:
        return UsernameExists()
    return EmailExists() if has_email else IdentifierExists()


def _is_pending_activation(account: Account) -> bool:
    """Return whether an account is pending activation (decision A4)."""
    return account.status == Status.ACTIVE and account.activated_at is None


def _is_blocked(rt: Runtime, address: str) -> bool:
    try:
        users.require_not_blocked(rt, address)
    except EmailBlocked:
        return True
    return False
