"""The step that decides which account a verified identity signs in to.

Invariant: an identity reaches an existing account only through a link, or through an email address
that both the provider and the account itself have verified; nothing less is enough.
"""

from sqlalchemy.orm import Session

from app.core.client import Client
from app.core.runtime import Runtime
from app.external_auth.drivers.interface import ExternalProfile
from app.external_auth.errors import PolicyDenied
from app.external_auth.kinds import ProviderKind
from app.external_auth.models import Provider
from app.external_auth.sign_in import linking, provisioning
from app.external_auth.sign_in.linking import ResolvedSignIn
from app.external_auth.sign_in.provisioning import RegistrationSettings
from app.users import identifiers
from app.users import service as users
from app.users.errors import EmailInvalid, PendingActivation


def resolve(
    rt: Runtime,
    session: Session,
    provider: Provider,
    profile: ExternalProfile,
    settings: RegistrationSettings,
    client: Client,
) -> ResolvedSignIn | None:
    """Return who signs in; None if a mailbox or a password has to show whose identity it is.

    The caller holds the identity's lock. Raises: AccountDisabled, PolicyDenied, LinkConflict,
    SystemNotInitialized, EmailExists, UsernamesTaken, IdentifierExists.
    """
    if account := linking.sign_in_linked(rt, session, profile):
        return ResolvedSignIn(account, provider, profile)
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
    if resolved := _link_by_address(rt, session, provider, profile, address, client):
        return resolved
    return _provision(rt, session, provider, profile, address, settings, client)


def _account_address(email: str) -> str | None:
    """Return an email address as accounts store it; None if no account can have it."""
    try:
        return identifiers.email(email)
    except EmailInvalid:
        return None


def _link_by_address(
    rt: Runtime,
    session: Session,
    provider: Provider,
    profile: ExternalProfile,
    address: str,
    client: Client,
) -> ResolvedSignIn | None:
    """Link the account that has this verified address if auto-linking applies, else None."""
    if not provider.auto_link_verified_email_enabled or not profile.email_verified:
        return None
    account = linking.lock_account_by_email(session, address)
    if account is None:
        return None
    try:
        linking.require_verified_email(account)
    except PendingActivation:
        return None
    resolved = ResolvedSignIn(account, provider, profile, is_new_link=True)
    linking.link(rt, session, resolved, client, email_snapshot=profile.email)
    return resolved


def _provision(
    rt: Runtime,
    session: Session,
    provider: Provider,
    profile: ExternalProfile,
    address: str,
    settings: RegistrationSettings,
    client: Client,
) -> ResolvedSignIn | None:
    """Create and link an account if that is enabled and permitted, else return None."""
    must_be_verified = provider.require_email_verified or provider.auto_link_verified_email_enabled
    if not provider.auto_provision_enabled or not settings.may_register:
        return None
    if must_be_verified and not profile.email_verified:
        return None
    # Locked, so that of two identities racing for it the second finds it taken.
    users.lock_address(session, address)
    if linking.find_account_by_email(session, address):
        return None
    account = provisioning.create_account(
        rt, session, profile, address, settings, is_verified=profile.email_verified
    )
    resolved = ResolvedSignIn(account, provider, profile, is_new_link=True, is_new_account=True)
    linking.link(rt, session, resolved, client, email_snapshot=profile.email)
    return resolved
