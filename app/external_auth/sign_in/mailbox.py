"""Use cases of claiming a pending identity by a mailbox.

The mailed link works in any browser: whoever reads the mailbox signs in.
"""

from datetime import datetime
from enum import StrEnum

from sqlalchemy.orm import Session

from app.contact_verification import tokens
from app.contact_verification.errors import (
    ContactVerificationExpired,
    ContactVerificationInvalid,
)
from app.core.client import Client
from app.core.runtime import Runtime
from app.core.tokens import digest, random_token
from app.external_auth import queries
from app.external_auth.errors import PolicyDenied
from app.external_auth.models import PendingIdentity, Provider
from app.external_auth.sign_in import linking, pending, provisioning
from app.external_auth.sign_in.linking import ResolvedSignIn
from app.external_auth.sign_in.provisioning import RegistrationSettings
from app.external_auth.sign_in.service import SignInResult
from app.mail import service as mail
from app.mail.templates import Template
from app.registration.errors import RegistrationDisabled
from app.users import identifiers
from app.users.models import FIRST_SESSION_VERSION, Account


class MailLinkFailure(StrEnum):
    """Why a mailed link signs nobody in, in the codes that the frontend's page knows."""

    MISSING = "email_verification_missing"
    INVALID = "email_verification_invalid"
    EXPIRED = "email_verification_expired"


def request_verification_mail(rt: Runtime, *, flow_token: str, email: str) -> None:
    """Mail a sign-in link to an address, once for each pending identity.

    Raises: FlowTokenInvalid, EmailInvalid, ContactVerificationInvalid, ProviderDisabled,
    PolicyDenied, AccountDisabled, PendingActivation, RegistrationDisabled, RateLimited.
    """
    token, address = pending.flow_token(flow_token), identifiers.email(email)
    settings = RegistrationSettings.of(rt)
    with rt.reading() as session:
        waiting = _get_unmailed(rt, session, token)
    # Counted whatever the outcome, since a refusal reveals whether an address has an account.
    identity = f"{waiting.identity_namespace}\0{waiting.subject}"
    mail.limit_requested_mail(rt, "external-mails", digest(identity))
    with rt.reading() as session:
        provider = pending.provider_of(session, waiting)
        _require_signing_in(session, provider, address, settings)
    # Per address as well, since one person may have many identities. Only if a mail would be sent:
    # otherwise refused requests could exhaust the address's quota.
    mail.limit_requested_mail(rt, "external-mails-to", digest(address))
    mail_token, now = tokens.PREFIX + random_token(), rt.clock.now()
    with rt.transaction() as session:
        # Check everything again in the transaction: it may have changed meanwhile.
        waiting = _get_unmailed(rt, session, token)
        provider = _lock_identity(session, waiting)
        owner = _require_signing_in(session, provider, address, settings)
        version = owner.session_version if owner else FIRST_SESSION_VERSION
        if not queries.record_mail_request(
            session, waiting, digest(mail_token), address, now, owner_session_version=version
        ):
            raise ContactVerificationInvalid
        seconds = max(1, int((waiting.expires_at - now).total_seconds()))
        mail.queue(
            rt,
            session,
            Template.EXTERNAL_AUTH_EMAIL_VERIFICATION,
            address,
            expires_at=waiting.expires_at,
            email=address,
            provider_name=provider.display_name,
            expires_in=mail.duration_in_words(seconds),
            token=mail_token,
        )


def confirm(rt: Runtime, token: str, client: Client) -> SignInResult | MailLinkFailure:
    """Sign in whoever follows a mailed link; create the account if there is none.

    Raises, without consuming the link: ProviderDisabled, PolicyDenied, AccountDisabled,
    PendingActivation, RegistrationDisabled, SystemNotInitialized, EmailExists, UsernamesTaken,
    IdentifierExists, LinkConflict, CredentialsFailed.
    """
    token = token.strip()
    if not token:
        return MailLinkFailure.MISSING
    settings, now = RegistrationSettings.of(rt), rt.clock.now()
    try:
        resolved, waiting = _redeem(rt, token, settings, now, client)
    except ContactVerificationInvalid:
        return MailLinkFailure.INVALID
    except ContactVerificationExpired:
        return MailLinkFailure.EXPIRED
    with pending.reopened_on_failure(rt, waiting, now):
        return SignInResult(linking.complete(rt, resolved, client), waiting.return_path)


def _get_unmailed(rt: Runtime, session: Session, token: str) -> PendingIdentity:
    waiting = pending.get_open(rt, session, token)
    if waiting.email_requested_at is not None:
        raise ContactVerificationInvalid
    return waiting


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
        linking.require_verified_email(owner)
    elif not settings.may_register:
        raise RegistrationDisabled
    return owner


def _redeem(
    rt: Runtime, token: str, settings: RegistrationSettings, now: datetime, client: Client
) -> tuple[ResolvedSignIn, PendingIdentity]:
    """Consume a mailed link; return who signs in, and the identity that was pending."""
    with rt.reading() as session:
        _get_mailed(session, token, now)  # keeps bad tokens from taking the write lock
    with rt.transaction() as session:
        waiting = _get_mailed(session, token, now)
        provider = _lock_identity(session, waiting)
        if not queries.consume(session, waiting, now):
            raise ContactVerificationInvalid
        return _resolve(rt, session, provider, waiting, settings, client), waiting


def _get_mailed(session: Session, token: str, now: datetime) -> PendingIdentity:
    waiting = queries.find_by_mail_token(session, digest(token))
    if waiting is None or waiting.consumed_at is not None:
        raise ContactVerificationInvalid
    if waiting.expires_at <= now:
        raise ContactVerificationExpired
    return waiting


def _lock_identity(session: Session, waiting: PendingIdentity) -> Provider:
    profile = pending.profile_of(waiting)
    return linking.lock_identity(
        session, waiting.provider_id, profile, gone=ContactVerificationInvalid
    )


def _resolve(
    rt: Runtime,
    session: Session,
    provider: Provider,
    waiting: PendingIdentity,
    settings: RegistrationSettings,
    client: Client,
) -> ResolvedSignIn:
    """Return who signs in: the identity's account, else the mailbox's, else a new one."""
    address, profile = waiting.target_email or "", pending.profile_of(waiting)
    if not provider.allows(address):
        raise PolicyDenied
    if account := linking.sign_in_linked(rt, session, profile):
        return ResolvedSignIn(account, provider, profile)
    owner = linking.lock_account_by_email(session, address)
    if owner is not None:
        linking.require_verified_email(owner)
        # Whatever ends all sessions, such as a new password, also invalidates mailed links. The
        # version is None for a mail from an older release, sent at most half an hour ago.
        if waiting.owner_session_version not in (None, owner.session_version):
            raise ContactVerificationInvalid
    elif not settings.may_register:
        raise RegistrationDisabled
    account = owner or provisioning.create_account(
        rt, session, profile, address, settings, is_verified=True
    )
    resolved = ResolvedSignIn(
        account, provider, profile, is_new_link=True, is_new_account=owner is None
    )
    linking.link(rt, session, resolved, client, email_snapshot=address)
    return resolved
