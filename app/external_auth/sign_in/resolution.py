"""The step that decides which account a verified identity signs in to.

Invariant: an identity reaches an existing account only through a link, or through an email address
that both the provider and the account itself have verified; nothing less is enough.
"""

from sqlalchemy.orm import Session

from app.core.runtime import Runtime
from app.external_auth.errors import PolicyDenied
from app.external_auth.kinds import ProviderKind
from app.external_auth.sign_in import linking
from app.external_auth.sign_in.linking import Arrival, ResolvedSignIn
from app.external_auth.sign_in.provisioning import RegistrationSettings, create_account
from app.users import identifiers
from app.users import service as users
from app.users.errors import EmailInvalid, PendingActivation


def resolve(
    rt: Runtime, session: Session, arrival: Arrival, settings: RegistrationSettings
) -> ResolvedSignIn | None:
    """Return who signs in; None if a mailbox or a password has to show whose identity it is.

    The caller holds the identity's lock. Raises: AccountDisabled, PolicyDenied, LinkConflict,
    SystemNotInitialized, EmailExists, UsernamesTaken, IdentifierExists.
    """
    provider, profile = arrival.provider, arrival.profile
    if account := linking.sign_in_linked(rt, session, profile):
        return ResolvedSignIn(account, arrival)
    if profile.email is None:
        # GitHub reports only addresses that it has verified: none is as good as an unverified one.
        if provider.provider_kind is ProviderKind.GITHUB and provider.require_email_verified:
            raise PolicyDenied
        return None
    if provider.require_email_verified and not profile.email_verified:
        raise PolicyDenied
    address = _account_address(profile.email)
    if not provider.allows(address or profile.email):
        raise PolicyDenied
    if address is None:
        return None
    if resolved := _link_by_address(rt, session, arrival, address):
        return resolved
    return _provision(rt, session, arrival, address, settings)


def _account_address(email: str) -> str | None:
    """Return an email address as accounts store it; None if no account can have it."""
    try:
        return identifiers.email(email)
    except EmailInvalid:
        return None


def _link_by_address(
    rt: Runtime, session: Session, arrival: Arrival, address: str
) -> ResolvedSignIn | None:
    """Link the account that has this verified address if auto-linking applies, else None."""
    profile = arrival.profile
    if not arrival.provider.auto_link_verified_email_enabled or not profile.email_verified:
        return None
    account = linking.lock_account_by_email(session, address)
    if account is None:
        return None
    try:
        linking.require_verified_email(account)
    except PendingActivation:
        return None
    return linking.link(rt, session, account, arrival, email_snapshot=profile.email)


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
    if linking.find_account_by_email(session, address):
        return None
    account = create_account(
        rt, session, profile, address, settings, is_verified=profile.email_verified
    )
    return linking.link(
        rt, session, account, arrival, email_snapshot=profile.email, is_new_account=True
    )
