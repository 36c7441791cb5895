"""What a signed-in person does at a provider: link an identity, or confirm to be the owner.

Invariant: both count for the session that began them and for no other, whichever browser comes
back. Neither opens a session.
"""

from enum import StrEnum

from app.confirmation import service as confirmation
from app.confirmation.errors import MethodNotOffered
from app.confirmation.service import Method
from app.core.access import Principal, SessionUserMismatch
from app.core.client import Client
from app.core.runtime import Runtime
from app.external_auth import queries
from app.external_auth.drivers import DRIVERS
from app.external_auth.drivers.driver import ExternalProfile
from app.external_auth.errors import IdentityTaken
from app.external_auth.models import Provider
from app.external_auth.sign_in import linking
from app.external_auth.sign_in.linking import Arrival
from app.mfa import service as mfa
from app.sessions import service as sessions


class Intent(StrEnum):
    """What a browser is sent to a provider for."""

    SIGN_IN = "sign_in"
    LINK = "link"
    CONFIRM = "confirm"


def require_confirmable(rt: Runtime, principal: Principal, provider: Provider) -> None:
    """Refuse a confirmation that would be weaker than the account's own sign-in.

    It would be where a sign-in asks for a code besides, of an authenticator app or mailed, and at
    a provider that does not say when somebody signed in.
    Raises: MethodNotOffered.
    """
    is_dated = DRIVERS[provider.provider_kind].tells_sign_in_time
    if not is_dated or mfa.methods(rt, principal.account):
        raise MethodNotOffered


def link(
    rt: Runtime, principal: Principal, provider: Provider, profile: ExternalProfile, client: Client
) -> None:
    """Link a verified identity to the account of a session; it may be linked to it already.

    Raises: SignInFailed, ProviderDisabled, PolicyDenied, PendingActivation, IdentityTaken,
    LinkConflict; AccountDisabled, TokenInvalid if the session has just ended.
    """
    with rt.transaction() as session:
        provider = linking.lock_identity(session, provider.id, profile)
        address = linking.permitted_address(provider, profile)
        account = sessions.lock_account(rt, session, principal)
        linking.require_verified_email(account)
        identity = queries.find_identity(session, profile.namespace, profile.subject)
        if identity is None:
            arrival = Arrival(provider, profile, client)
            linking.link(rt, session, account, arrival, email_snapshot=address or profile.email)
        elif identity.user_id != account.id:
            raise IdentityTaken


def confirm(
    rt: Runtime, principal: Principal, provider: Provider, profile: ExternalProfile, client: Client
) -> None:
    """Confirm a session by a verified identity of its own account.

    Raises: MethodNotOffered, SignInFailed, ProviderDisabled; SessionUserMismatch for an identity of
    another account, or of none; AccountDisabled, TokenInvalid if the session has just ended.
    """
    require_confirmable(rt, principal, provider)
    with rt.transaction() as session:
        linking.lock_identity(session, provider.id, profile)
        account = sessions.lock_account(rt, session, principal)
        identity = queries.find_identity(session, profile.namespace, profile.subject)
        if identity is None or identity.user_id != account.id:
            raise SessionUserMismatch
        confirmation.note(rt, session, principal, account, Method.EXTERNAL, client)
