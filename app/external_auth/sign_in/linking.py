"""The steps that decide which account a verified identity signs in to, make a new one, and link it.

Invariant: an identity reaches an existing account only through a link, through its password, or
through an email address that both the provider and the owner of the account have proven.
Invariant: an identity belongs to one account. The identity is locked before its account is looked
up, so that of two concurrent first sign-ins the second finds what the first created.
Lock order: the identity, its provider, the account's row.
"""

from dataclasses import dataclass, field

from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.audit import service as audit
from app.audit.models import Action, EntityType, Event
from app.core.access import AccountDisabled, PendingActivation
from app.core.client import Client, SignInWish
from app.core.errors import AppError
from app.core.runtime import Runtime
from app.external_auth import queries
from app.external_auth.drivers.driver import ExternalProfile
from app.external_auth.errors import (
    LinkConflict,
    PolicyDenied,
    ProviderDisabled,
    SignInFailed,
)
from app.external_auth.models import Identity, Provider, ProviderKind
from app.external_auth.sign_in.new_accounts import (
    RegistrationSettings,
    account_address,
    create_account,
)
from app.login.completion import (
    FirstFactor,
    FirstFactorKind,
    LoginOutcome,
    MfaRequired,
    VerifiedPassword,
    complete_login,
)
from app.store import locks
from app.users import queries as users_queries
from app.users import service as users
from app.users.errors import AddressUnproven
from app.users.models import Account, Status


@dataclass(frozen=True)
class Arrival:
    """A verified identity, the provider that asserts it, and the browser that came with it."""

    provider: Provider
    profile: ExternalProfile
    client: Client
    wish: SignInWish = field(default_factory=SignInWish)


@dataclass(frozen=True)
class ResolvedSignIn:
    """An identity, the account it signs in to, and which of account and link are new."""

    account: Account
    arrival: Arrival
    is_new_link: bool = False
    is_new_account: bool = False

    @property
    def details(self) -> dict[str, object]:
        """What the audit log records about it."""
        return {
            "provider_key": self.arrival.provider.key,
            "provider_name": self.arrival.provider.display_name,
            "issuer": self.arrival.profile.namespace,
            "subject": self.arrival.profile.subject,
            "linked": self.is_new_link,
            "auto_provisioned": self.is_new_account,
        }


def lock_identity(
    session: Session,
    provider_id: int,
    profile: ExternalProfile,
    *,
    gone: type[AppError] = SignInFailed,
) -> Provider:
    """Lock an identity, and its provider against deletion; return the provider as it is now.

    Raises: `gone` if the provider was deleted meanwhile, ProviderDisabled.
    """
    locks.hold_text(session, f"external-identity:{profile.namespace}\0{profile.subject}")
    provider = queries.lock_provider(session, provider_id)
    if provider is None:
        raise gone
    if not provider.enabled:
        raise ProviderDisabled
    return provider


def sign_in_linked(rt: Runtime, session: Session, arrival: Arrival) -> Account | None:
    """Return the account an identity is linked to, and record the sign-in; None if not linked.

    Raises: AccountDisabled.
    """
    provider, profile = arrival.provider, arrival.profile
    identity = queries.find_identity(session, profile.namespace, profile.subject)
    account = users_queries.lock_and_find(session, identity.user_id) if identity else None
    if identity is None or account is None:
        return None
    if account.status != Status.ACTIVE:
        raise AccountDisabled
    now = rt.clock.now()
    address = profile.email and (account_address(profile.email) or profile.email)
    said = {
        "email_snapshot": address,
        "display_name_snapshot": profile.display_name,
    }
    known = {name: value for name, value in said.items() if value is not None}
    # It may have been unlinked while this waited for the lock on the account's row.
    if not queries.touch_identity(session, identity, now, **known):
        return None
    is_vouched_for = profile.email_verified and address == account.email
    if is_vouched_for and provider.is_trusted_with(account.email) and account.proven_at is None:
        verified_at = account.email_verified_at or now
        proven = {"email_verified_at": verified_at, "proven_at": now}
        users_queries.set_columns(session, account.id, now, **proven)
    return account


def find_account_by_email(session: Session, address: str) -> Account | None:
    """Return the account with this email address, without locking it."""
    return users_queries.find_by_identifier(session, address)


def lock_account_by_email(session: Session, address: str) -> Account | None:
    """Return the account with this email address, locked until the transaction ends.

    The address is compared again under the lock: it may have changed during the wait.
    """
    found = find_account_by_email(session, address)
    account = users_queries.lock_and_find(session, found.id) if found else None
    return account if account is not None and account.email == address else None


def require_verified_email(account: Account) -> None:
    """Refuse to link an account that has not verified its own email address.

    Otherwise whoever registered with somebody else's address would get that person's identity.
    Raises: AccountDisabled; PendingActivation, also for an activated account whose address is
    unverified.
    """
    users.require_sign_in_allowed(account)
    if account.email_verified_at is None:
        raise PendingActivation


def require_proven_email(account: Account) -> None:
    """Refuse to link an account by its address unless the mailbox's owner has acted in person.

    A mail scanner may have opened the link for a stranger who registered with that address.
    Raises: AccountDisabled, PendingActivation.
    """
    require_verified_email(account)
    if account.proven_at is None:
        raise AddressUnproven


def link(
    rt: Runtime,
    session: Session,
    account: Account,
    arrival: Arrival,
    *,
    email_snapshot: str | None,
    is_new_account: bool = False,
) -> ResolvedSignIn:
    """Link an unlinked identity to a locked account; notify the owner unless the account is new.

    Raises: LinkConflict if the account, or the subject, already has a link at this provider.
    """
    provider, profile, now = arrival.provider, arrival.profile, rt.clock.now()
    if not queries.is_linkable(session, account.id, provider.id, profile.subject):
        raise LinkConflict
    session.add(
        Identity(
            user_id=account.id,
            provider_id=provider.id,
            identity_namespace=profile.namespace,
            subject=profile.subject,
            email_snapshot=email_snapshot,
            display_name_snapshot=profile.display_name,
            created_at=now,
            updated_at=now,
            last_login_at=now,
        )
    )
    try:
        session.flush()
    except IntegrityError:
        # The same subject of this provider was linked concurrently, in another namespace.
        raise LinkConflict from None
    resolved = ResolvedSignIn(account, arrival, is_new_link=True, is_new_account=is_new_account)
    _tell(rt, session, resolved)
    return resolved


def _tell(rt: Runtime, session: Session, resolved: ResolvedSignIn) -> None:
    """Record a new link, and tell the owner of an account that was there before."""
    account, provider = resolved.account, resolved.arrival.provider
    event = Event(
        Action.USER_EXTERNAL_AUTH_LINK,
        EntityType.EXTERNAL_AUTH_IDENTITY,
        client=resolved.arrival.client,
        user_id=account.id,
        entity_name=provider.key,
        details=resolved.details,
    )
    audit.record(rt, session, event)
    if not resolved.is_new_account:
        # The mail names the provider but nothing of the identity: whoever took over a session must
        # not be able to choose words that appear in a mail from this service.
        told = (
            f"A sign-in with {provider.display_name} was added. "
            "It can be used to sign in without a password."
        )
        users.notify_owner(rt, session, account, told)


def complete(
    rt: Runtime, resolved: ResolvedSignIn, password: VerifiedPassword | None = None
) -> LoginOutcome | MfaRequired:
    """Turn a verified identity into a session, or into a login that awaits a second factor.

    If the user also typed a `password`, that is the first factor: the MFA step then fails if
    password logins are switched off meanwhile.
    Raises: AccountDisabled, PendingActivation; CredentialsFailed if the account has just changed.
    """
    factor = FirstFactor(
        kind=FirstFactorKind.PASSWORD if password else FirstFactorKind.EXTERNAL_AUTH,
        action=Action.USER_EXTERNAL_AUTH_LOGIN,
        entity_type=EntityType.EXTERNAL_AUTH_IDENTITY,
        entity_name=resolved.arrival.provider.key,
        details=resolved.details,
        password=password,
    )
    arrival = resolved.arrival
    return complete_login(rt, resolved.account, factor, arrival.client, arrival.wish)


def resolve(
    rt: Runtime, session: Session, arrival: Arrival, settings: RegistrationSettings
) -> ResolvedSignIn | None:
    """Return who signs in; None if a mailbox or a password has to show whose identity it is.

    The caller holds the identity's lock. Raises: AccountDisabled, PolicyDenied, LinkConflict,
    SystemNotInitialized, EmailExists, UsernamesTaken, IdentifierExists.
    """
    provider, profile = arrival.provider, arrival.profile
    if account := sign_in_linked(rt, session, arrival):
        return ResolvedSignIn(account, arrival)
    address = permitted_address(provider, profile)
    if address is None:
        return None
    if resolved := _link_by_address(rt, session, arrival, address):
        return resolved
    return _provision(rt, session, arrival, address, settings)


def permitted_address(provider: Provider, profile: ExternalProfile) -> str | None:
    """Return the email address of a profile as accounts store it; None if no account can have it.

    Raises: PolicyDenied, if the provider's rules forbid the identity a new link.
    """
    if profile.email is None:
        # GitHub reports only addresses that it has verified: none is as good as an unverified one.
        if provider.provider_kind is ProviderKind.GITHUB and provider.require_email_verified:
            raise PolicyDenied
        return None
    if provider.require_email_verified and not profile.email_verified:
        raise PolicyDenied
    address = account_address(profile.email)
    if not provider.allows(address or profile.email):
        raise PolicyDenied
    return address


def _link_by_address(
    rt: Runtime, session: Session, arrival: Arrival, address: str
) -> ResolvedSignIn | None:
    """Link the account that has this verified address if auto-linking applies, else None."""
    profile = arrival.profile
    if not arrival.provider.auto_link_verified_email_enabled or not profile.email_verified:
        return None
    account = lock_account_by_email(session, address)
    if account is None:
        return None
    try:
        require_proven_email(account)
    except PendingActivation:
        return None
    return link(rt, session, account, arrival, email_snapshot=address)


def _provision(
    rt: Runtime, session: Session, arrival: Arrival, address: str, settings: RegistrationSettings
) -> ResolvedSignIn | None:
    """Create and link an account if that is enabled and permitted, else return None."""
    provider, profile = arrival.provider, arrival.profile
    must_be_verified = provider.require_email_verified or provider.auto_link_verified_email_enabled
    if not provider.auto_provision_enabled or not settings.may_register:
        return None
    if must_be_verified and not profile.email_verified:
        return None
    # Locked, so that of two identities racing for it the second finds it taken.
    users.lock_address(session, address)
    if find_account_by_email(session, address):
        return None
    account = create_account(
        rt, session, profile, address, settings, is_verified=profile.email_verified
    )
    return link(rt, session, account, arrival, email_snapshot=address, is_new_account=True)
