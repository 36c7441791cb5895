"""Identities that are verified but have no account: a mailbox or a password shows whose they are.

The mailed link signs in at once only in the browser that asked for it. In any other a person has to
press a button: scanners open links, too, and who asked may be a stranger who typed this address.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from sqlalchemy.orm import Session

from app.contact_verification import tokens
from app.contact_verification.errors import (
    ContactVerificationExpired,
    ContactVerificationInvalid,
)
from app.contact_verification.service import is_same_browser
from app.core.client import Client, SignInWish
from app.core.runtime import Runtime
from app.crypto.tokens import digest, random_hex, random_token
from app.external_auth import queries
from app.external_auth.drivers.driver import ExternalProfile
from app.external_auth.errors import (
    PasswordMissing,
    PolicyDenied,
)
from app.external_auth.models import PendingIdentity, Provider
from app.external_auth.sign_in import linking
from app.external_auth.sign_in.linking import Arrival, ResolvedSignIn
from app.external_auth.sign_in.new_accounts import RegistrationSettings, create_account
from app.external_auth.sign_in.pending_rows import (
    checked_token,
    get_mailed,
    get_open,
    locked,
    provider_of,
    require_unmailed,
)
from app.login import sign_in_methods
from app.login.completion import LoginOutcome, MfaRequired, refund_on_failure
from app.login.errors import CredentialsFailed
from app.login.password import check_password
from app.mail import service as mail
from app.mail.templates import Template
from app.registration.errors import RegistrationDisabled
from app.store.database import DATABASE_ERRORS
from app.users import identifiers
from app.users import queries as users_queries
from app.users.models import FIRST_SESSION_VERSION, Account

PREFIX = "oev_"
LIFE = timedelta(seconds=1800)


class MailAnswer(StrEnum):
    """What a person answers who is asked whether an identity is theirs."""

    YES = "yes"
    NO = "no"


class MailLinkFailure(StrEnum):
    """Why a mailed link signs nobody in, in the codes that the frontend's page knows."""

    MISSING = "email_verification_missing"
    INVALID = "email_verification_invalid"
    EXPIRED = "email_verification_expired"
    DECLINED = "email_verification_declined"


@dataclass(frozen=True)
class Question:
    """What a person is asked who opens a mailed link in another browser than the one that asked.

    `name` is what the provider calls the identity, None if it says nothing; `username` is of the
    account that has the address, None if there is none yet.
    """

    provider_name: str
    name: str | None
    address: str
    username: str | None


def open_pending(session: Session, arrival: Arrival, return_path: str, now: datetime) -> str:
    """Store a pending identity; return its flow token."""
    token, profile = PREFIX + random_hex(), arrival.profile
    session.add(
        PendingIdentity(
            provider_id=arrival.provider.id,
            identity_namespace=profile.namespace,
            subject=profile.subject,
            display_name_snapshot=profile.display_name,
            preferred_username_snapshot=profile.preferred_username,
            return_path=return_path,
            is_short=arrival.wish.is_short,
            flow_token_digest=digest(token),
            created_at=now,
            expires_at=now + LIFE,
        )
    )
    return token


def request_verification_mail(rt: Runtime, *, flow_token: str, email: str, browser: str) -> None:
    """Mail a sign-in link to an address, once for each pending identity.

    `browser` is the digest of the id of the browser that asks for it.

    Raises: FlowTokenInvalid, EmailInvalid, ContactVerificationInvalid, ProviderDisabled,
    PolicyDenied, AccountDisabled, PendingActivation, RegistrationDisabled, RateLimited.
    """
    token, address = checked_token(flow_token), identifiers.email(email)
    settings = RegistrationSettings.of(rt)
    with rt.reading() as session:
        waiting = get_open(rt, session, token)
    require_unmailed(waiting)
    # Counted whatever the outcome, since a refusal reveals whether an address has an account.
    identity = f"{waiting.identity_namespace}\0{waiting.subject}"
    mail.limit_requested_mail(rt, "external-mails", digest(identity))
    with rt.reading() as session:
        provider = provider_of(session, waiting)
        _require_signing_in(session, provider, address, settings)
    # Per address as well, since one person may have many identities. Only if a mail would be sent:
    # otherwise refused requests could exhaust the address's quota.
    mail.limit_requested_mail(rt, "external-mails-to", digest(address))
    mail_token, now = tokens.PREFIX + random_token(), rt.clock.now()
    with rt.transaction() as session:
        # Check everything again in the transaction: it may have changed meanwhile.
        provider = _lock_identity(session, waiting)
        waiting = locked(session, waiting, now)
        require_unmailed(waiting)
        owner = _require_signing_in(session, provider, address, settings)
        waiting.target_email, waiting.email_requested_at = address, now
        waiting.browser_digest = browser
        waiting.verification_token_digest = digest(mail_token)
        waiting.owner_session_version = owner.session_version if owner else FIRST_SESSION_VERSION
        seconds = max(1, int((waiting.expires_at - now).total_seconds()))
        mail.queue(
            rt,
            session,
            Template.EXTERNAL_AUTH_EMAIL_VERIFICATION,
            address,
            expires_at=waiting.expires_at,
            email=address,
            provider_name=provider.display_name,
            language=owner.language if owner else None,
            is_answer=True,
            lifetime=seconds,
            token=mail_token,
        )


def open_link(
    rt: Runtime, token: str, client: Client, browser: str | None, wish: SignInWish
) -> tuple[LoginOutcome | MfaRequired, str] | MailLinkFailure | Question:
    """Do as `confirm_mailbox` does in the browser that asked for a mailed link, else nothing.

    `browser` is the digest of the id of the browser that opens it. Raises: what `confirm_mailbox`
    raises; without consuming the link, ProviderDisabled.
    """
    try:
        with rt.reading() as session:
            waiting = get_mailed(session, token.strip(), rt.clock.now())
            provider = provider_of(session, waiting)
            owner = linking.find_account_by_email(session, waiting.target_email or "")
    except ContactVerificationInvalid:
        return MailLinkFailure.INVALID if token.strip() else MailLinkFailure.MISSING
    except ContactVerificationExpired:
        return MailLinkFailure.EXPIRED
    if is_same_browser(browser, waiting.browser_digest):
        return confirm_mailbox(rt, token, client, wish)
    return Question(
        provider.display_name,
        waiting.display_name_snapshot or waiting.preferred_username_snapshot,
        waiting.target_email or "",
        owner and owner.username,
    )


def decline(rt: Runtime, token: str) -> MailLinkFailure:
    """Void a mailed link, and the identity that waits for it."""
    now = rt.clock.now()
    try:
        with rt.transaction() as session:
            locked(session, get_mailed(session, token.strip(), now), now).consumed_at = now
    except ContactVerificationInvalid:
        return MailLinkFailure.INVALID
    except ContactVerificationExpired:
        return MailLinkFailure.EXPIRED
    return MailLinkFailure.DECLINED


def confirm_mailbox(
    rt: Runtime, token: str, client: Client, wish: SignInWish
) -> tuple[LoginOutcome | MfaRequired, str] | MailLinkFailure:
    """Sign in the person who answers a mailed link; create the account if there is none.

    Returns the outcome, and the path that was requested at the start of the sign-in.
    Raises, without consuming the link: ProviderDisabled, PolicyDenied, AccountDisabled,
    PendingActivation, RegistrationDisabled, SystemNotInitialized, EmailExists, UsernamesTaken,
    IdentifierExists, LinkConflict, CredentialsFailed.
    """
    token = token.strip()
    if not token:
        return MailLinkFailure.MISSING
    settings, now = RegistrationSettings.of(rt), rt.clock.now()
    try:
        with rt.reading() as session:
            get_mailed(session, token, now)  # keeps bad tokens from taking the write lock
        with rt.transaction() as session:
            waiting = get_mailed(session, token, now)
            arrival = _arrival(session, waiting, client, wish)
            waiting = locked(session, waiting, now)
            waiting.consumed_at = now
            resolved = _resolve(rt, session, arrival, waiting, settings)
    except ContactVerificationInvalid:
        return MailLinkFailure.INVALID
    except ContactVerificationExpired:
        return MailLinkFailure.EXPIRED
    with _reopened_on_failure(rt, waiting, now):
        return linking.complete(rt, resolved), waiting.return_path


def link_by_password(
    rt: Runtime,
    *,
    flow_token: str,
    identifier: str,
    password: str,
    client: Client,
    wish: SignInWish,
) -> LoginOutcome | MfaRequired:
    """Link a pending identity to the account whose password was given, and sign in.

    The link is created before a second factor is asked for. Guesses count like failed logins.
    Raises: PasswordLoginDisabled, FlowTokenInvalid, PasswordMissing, ContactVerificationInvalid,
    ProviderDisabled, RateLimited, CredentialsFailed, AccountDisabled, PendingActivation,
    PolicyDenied for an identity linked to another account, LinkConflict.
    """
    sign_in_methods.require_password_login(rt)
    token = checked_token(flow_token)
    if not identifier.strip() or not password:
        raise PasswordMissing
    with rt.reading() as session:
        waiting = get_open(rt, session, token)
        provider_of(session, waiting)
    account, verified = check_password(rt, identifier, password, client)
    now = rt.clock.now()
    with refund_on_failure(rt, verified, client):
        resolved = _link(rt, waiting, account, now, client, wish)
    with _reopened_on_failure(rt, waiting, now):
        return linking.complete(rt, resolved, verified)


def _profile(pending: PendingIdentity) -> ExternalProfile:
    """Return the stored part of the identity's profile, which excludes its email address."""
    return ExternalProfile(
        namespace=pending.identity_namespace,
        subject=pending.subject,
        display_name=pending.display_name_snapshot,
        preferred_username=pending.preferred_username_snapshot,
    )


def _lock_identity(session: Session, waiting: PendingIdentity) -> Provider:
    gone = ContactVerificationInvalid
    return linking.lock_identity(session, waiting.provider_id, _profile(waiting), gone=gone)


def _arrival(
    session: Session, waiting: PendingIdentity, client: Client, wish: SignInWish
) -> Arrival:
    """Return a locked identity with the browser that comes for it, signed in as it began."""
    provider = _lock_identity(session, waiting)
    wish = replace(wish, remember=not waiting.is_short)
    return Arrival(provider, _profile(waiting), client, wish)


def _require_signing_in(
    session: Session, provider: Provider, address: str, settings: RegistrationSettings
) -> Account | None:
    """Refuse an address whose mail could sign nobody in; return its account, or None.

    Raises: PolicyDenied, AccountDisabled, PendingActivation, RegistrationDisabled.
    """
    if not provider.allows(address):
        raise PolicyDenied
    owner = linking.find_account_by_email(session, address)
    if owner is not None:
        linking.require_proven_email(owner)
    else:
        _require_open(provider, settings)
    return owner


def _require_open(provider: Provider, settings: RegistrationSettings) -> None:
    if not (settings.may_register and provider.auto_provision_enabled):
        raise RegistrationDisabled


def _resolve(
    rt: Runtime,
    session: Session,
    arrival: Arrival,
    waiting: PendingIdentity,
    settings: RegistrationSettings,
) -> ResolvedSignIn:
    """Return who signs in: the identity's account, else the mailbox's, else a new one."""
    address, profile = waiting.target_email or "", arrival.profile
    if not arrival.provider.allows(address):
        raise PolicyDenied
    if account := linking.sign_in_linked(rt, session, arrival):
        if account.email != address:  # linked meanwhile, to an account that nobody was asked about
            raise ContactVerificationInvalid
        return ResolvedSignIn(account, arrival)
    owner = linking.lock_account_by_email(session, address)
    if owner is not None:
        linking.require_proven_email(owner)
        # Whatever ends all sessions, such as a new password, also invalidates mailed links. The
        # version is None for a mail from an older release, sent at most half an hour ago.
        if waiting.owner_session_version not in (None, owner.session_version):
            raise ContactVerificationInvalid
        return linking.link(rt, session, owner, arrival, email_snapshot=address)
    _require_open(arrival.provider, settings)
    made = create_account(rt, session, profile, address, settings, is_verified=True)
    return linking.link(rt, session, made, arrival, email_snapshot=address, is_new_account=True)


def _link(
    rt: Runtime,
    waiting: PendingIdentity,
    seen: Account,
    now: datetime,
    client: Client,
    wish: SignInWish,
) -> ResolvedSignIn:
    """Consume the pending identity for an account unchanged since its password was checked.

    If the identity is already linked to this account, only the sign-in is recorded.
    Raises: CredentialsFailed if the account has changed, AccountDisabled, PendingActivation,
    ContactVerificationInvalid if no longer pending, ProviderDisabled, PolicyDenied, LinkConflict.
    """
    profile = _profile(waiting)
    with rt.transaction() as session:
        arrival = _arrival(session, waiting, client, wish)
        account = users_queries.lock_and_find(session, seen.id)
        if account is None or account.session_version != seen.session_version:
            raise CredentialsFailed
        linking.require_verified_email(account)
        locked(session, waiting, now).consumed_at = now
        identity = queries.find_identity(session, profile.namespace, profile.subject)
        if identity is not None and identity.user_id != account.id:
            raise PolicyDenied
        if identity is not None and queries.touch_identity(session, identity, now):
            return ResolvedSignIn(account, arrival)
        return linking.link(rt, session, account, arrival, email_snapshot=None)


@contextmanager
def _reopened_on_failure(
    rt: Runtime, pending: PendingIdentity, consumed_at: datetime
) -> Iterator[None]:
    """Undo the consumption of a pending identity if the block fails.

    Best effort: while the database is unavailable the identity stays consumed.
    """
    try:
        yield
    except BaseException:
        with suppress(*DATABASE_ERRORS), rt.transaction() as session:
            row = queries.lock_pending(session, pending.id)
            if row is not None and row.consumed_at == consumed_at:
                row.consumed_at = None
        raise
