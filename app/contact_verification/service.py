"""Use cases of addresses: redeem a mailed link, change the account's own address."""

import hmac
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlalchemy.orm import Session

from app.audit.models import Action
from app.contact_verification import tokens
from app.contact_verification.errors import (
    ContactVerificationExpired,
    ContactVerificationInvalid,
    EmailUnchanged,
    EmailVerified,
    NoPendingChange,
)
from app.contact_verification.models import ContactToken, LinkPurpose
from app.core.access import AccountDisabled, Principal
from app.core.client import Client
from app.core.errors import RateLimited
from app.core.runtime import Runtime
from app.crypto.tokens import digest
from app.mail import service as mail
from app.mail.templates import Template
from app.sessions import service as sessions
from app.settings import keys
from app.users import identifiers
from app.users import queries as users_queries
from app.users import service as users
from app.users.models import Account, Status

CONFIRMABLE = (LinkPurpose.REGISTER_ACTIVATION, LinkPurpose.CONTACT_CHANGE)


class LinkOutcome(StrEnum):
    """The outcome of a link; the values are the ones the frontend's pages expect."""

    MISSING = "missing"
    INVALID = "invalid"
    EXPIRED = "expired"
    ACTIVATED = "register-activated"
    EMAIL_CHANGED = "email-changed"


@dataclass(frozen=True)
class ConfirmationResult:
    """The outcome of a link; `new_email` is set only if the address changed."""

    outcome: LinkOutcome
    new_email: str | None = None


def confirm(rt: Runtime, token: str, client: Client, browser: str | None) -> ConfirmationResult:
    """Redeem the link of an activation or of an address change, opened in the browser `browser`.

    Only in the browser that asked for it does it show that the mailbox's owner acts: scanners open
    links, too. A token that cannot be used is an outcome, not an error.
    Raises, without consuming the token: AccountDisabled; EmailExists if another account has taken
    the new address in the meantime.
    """
    token = token.strip()
    if not token:
        return ConfirmationResult(LinkOutcome.MISSING)
    try:
        return _confirm(rt, token, client, browser)
    except ContactVerificationInvalid:
        return ConfirmationResult(LinkOutcome.INVALID)
    except ContactVerificationExpired:
        return ConfirmationResult(LinkOutcome.EXPIRED)


def request_change(
    rt: Runtime, principal: Principal, *, new_email: str, client: Client, browser: str
) -> Account:
    """Start a change of address by mailing a confirmation link to the new one.

    The account's address changes only once the link is followed; a request for a different
    address replaces the pending one at once.
    Raises: errors.REQUEST_CHANGE, RateLimited; AccountDisabled or TokenInvalid if the account was
    disabled or the session ended in the meantime.
    """
    address = identifiers.email(new_email)
    _require_changeable(principal.account, address)
    users.require_allowed_address(rt, address)
    _require_free(rt, principal.user_id, address)
    if seconds := tokens.seconds_to_wait(
        rt, principal.user_id, LinkPurpose.CONTACT_CHANGE, address
    ):
        raise RateLimited(retry_after=seconds)
    _count_mail(rt, principal.user_id, address)
    with rt.transaction() as session:
        account = sessions.lock_account(rt, session, principal)
        _require_changeable(account, address)
        users.reserve_address(session, address, user_id=account.id)
        if not tokens.send(rt, session, account, LinkPurpose.CONTACT_CHANGE, address, browser):
            # A concurrent request won the race and has just sent one.
            cooldown = rt.settings.get(keys.CONTACT_COOLDOWN_SECONDS)
            raise RateLimited(retry_after=max(1, cooldown))
        now = rt.clock.now()
        users_queries.set_columns(session, account.id, now, pending_email=address)
        details = {"new_email": address}
        users.record(rt, session, Action.USER_REQUEST_EMAIL_CHANGE, account, client, details)
        return users.get(session, account.id)


def resend_change(rt: Runtime, principal: Principal, *, client: Client, browser: str) -> None:
    """Send the mail to the new address again; do nothing within the cooldown of the last one.

    Raises: errors.RESEND_CHANGE, RateLimited; AccountDisabled or TokenInvalid if the account was
    disabled or the session ended in the meantime.
    """
    address = _pending_address(principal.account)
    users.require_activated(principal.account)
    users.require_not_blocked(rt, address)
    _require_free(rt, principal.user_id, address)
    if tokens.seconds_to_wait(rt, principal.user_id, LinkPurpose.CONTACT_CHANGE, address):
        return
    _count_mail(rt, principal.user_id, address)
    with rt.transaction() as session:
        account = sessions.lock_account(rt, session, principal)
        if _pending_address(account) != address:
            return  # a concurrent request replaced the address and sent its own mail
        users.reserve_address(session, address, user_id=account.id)
        if tokens.send(rt, session, account, LinkPurpose.CONTACT_CHANGE, address, browser):
            users.record(rt, session, Action.USER_RESEND_EMAIL_CHANGE, account, client)


def send_confirmation(rt: Runtime, principal: Principal, *, client: Client, browser: str) -> None:
    """Mail the link that confirms the address that the account has.

    Raises: errors.SEND_CONFIRMATION, RateLimited; AccountDisabled or TokenInvalid if the account
    was disabled or the session ended in the meantime.
    """
    purpose, address = LinkPurpose.REGISTER_ACTIVATION, principal.account.email
    _require_unverified(principal.account)
    users.require_not_blocked(rt, address)
    if seconds := tokens.seconds_to_wait(rt, principal.user_id, purpose, address):
        raise RateLimited(retry_after=seconds)
    _count_mail(rt, principal.user_id, address)
    with rt.transaction() as session:
        account = sessions.lock_account(rt, session, principal)
        _require_unverified(account)
        if tokens.send(rt, session, account, purpose, account.email, browser):
            users.record(rt, session, Action.USER_RESEND_REGISTRATION, account, client)


def _confirm(rt: Runtime, token: str, client: Client, browser: str | None) -> ConfirmationResult:
    with rt.reading() as session:
        tokens.peek(rt, session, token, CONFIRMABLE)  # bogus tokens must not take a write lock
    with rt.transaction() as session:
        found = tokens.redeem(rt, session, token, CONFIRMABLE)
        account = users.get(session, found.user_id)
        if account.status != Status.ACTIVE:
            raise AccountDisabled
        proven_at = rt.clock.now() if is_same_browser(browser, found.browser_digest) else None
        if found.purpose == LinkPurpose.REGISTER_ACTIVATION:
            return _activate(rt, session, account, found, proven_at, client)
        return _change_address(rt, session, account, found, proven_at, client)


def is_same_browser(browser: str | None, asked: str | None) -> bool:
    """Return whether a link is opened in the browser that has asked for it."""
    return browser is not None and asked is not None and hmac.compare_digest(browser, asked)


def _activate(
    rt: Runtime,
    session: Session,
    account: Account,
    found: ContactToken,
    proven_at: datetime | None,
    client: Client,
) -> ConfirmationResult:
    if found.address != account.email:
        raise ContactVerificationInvalid
    now = rt.clock.now()
    users_queries.set_columns(
        session,
        account.id,
        now,
        activated_at=account.activated_at or now,
        email_verified_at=account.email_verified_at or now,
        proven_at=account.proven_at or proven_at,
    )
    users.record(rt, session, Action.USER_CONFIRM_REGISTRATION, account, client)
    return ConfirmationResult(LinkOutcome.ACTIVATED)


def _change_address(
    rt: Runtime,
    session: Session,
    account: Account,
    found: ContactToken,
    proven_at: datetime | None,
    client: Client,
) -> ConfirmationResult:
    """Make the pending address the account's own and void every other link of the account."""
    if found.address != account.pending_email:
        raise ContactVerificationInvalid
    users.reserve_address(session, found.address, user_id=account.id)
    tokens.void(session, account.id)
    now = rt.clock.now()
    columns = {"email": found.address, "email_verified_at": now, "proven_at": proven_at}
    users_queries.set_columns(session, account.id, now, **columns)
    details = {"previous_email": account.email, "new_email": found.address}
    mail.queue(
        rt,
        session,
        Template.CONTACT_CHANGE_NOTICE,
        account.email,
        language=account.language,
        username=account.username,
        previous_email=account.email,
        new_email=found.address,
    )
    users.record(rt, session, Action.USER_CONFIRM_EMAIL_CHANGE, account, client, details)
    return ConfirmationResult(LinkOutcome.EMAIL_CHANGED, found.address)


def _require_changeable(account: Account, address: str) -> None:
    users.require_activated(account)
    if address == account.email:
        raise EmailUnchanged


def _require_unverified(account: Account) -> None:
    if account.email_verified:
        raise EmailVerified


def _pending_address(account: Account) -> str:
    if account.pending_email is None:
        raise NoPendingChange
    return account.pending_email


def _require_free(rt: Runtime, user_id: int, address: str) -> None:
    """Raise EmailExists if another account has the address."""
    with rt.reading() as session:
        users.require_free_address(session, address, user_id=user_id)


def _count_mail(rt: Runtime, user_id: int, address: str) -> None:
    """Charge a mail, which has passed every other check, to its rate limits.

    Raises: RateLimited when the account has requested too many mails, or when all accounts
    together have requested too many to this address.
    """
    mail.limit_requested_mail(rt, "change-mails", str(user_id))
    mail.limit_requested_mail(rt, "change-mails-to", digest(address))
