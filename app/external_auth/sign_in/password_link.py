"""The use case of claiming a pending identity by a password."""

from datetime import datetime

from app.contact_verification.errors import ContactVerificationInvalid
from app.core.client import Client
from app.core.runtime import Runtime
from app.external_auth import queries
from app.external_auth.errors import PasswordMissing, PolicyDenied
from app.external_auth.models import PendingIdentity
from app.external_auth.sign_in import linking, pending
from app.external_auth.sign_in.linking import ResolvedSignIn
from app.login import sign_in_methods
from app.login.errors import CredentialsFailed
from app.login.service import LoginOutcome, MfaRequired, check_password, refund_on_failure
from app.users import queries as users_queries
from app.users.models import Account


def link_by_password(
    rt: Runtime, *, flow_token: str, identifier: str, password: str, client: Client
) -> LoginOutcome | MfaRequired:
    """Link a pending identity to the account whose password was given, and sign in.

    The link is created before a second factor is asked for. Guesses count like failed logins.
    Raises: PasswordLoginDisabled, FlowTokenInvalid, PasswordMissing, ContactVerificationInvalid,
    ProviderDisabled, RateLimited, CredentialsFailed, AccountDisabled, PendingActivation,
    PolicyDenied for an identity linked to another account, LinkConflict.
    """
    sign_in_methods.require_password_login(rt)
    token = pending.flow_token(flow_token)
    if not identifier.strip() or not password:
        raise PasswordMissing
    waiting = _get_pending(rt, token)
    account, verified = check_password(rt, identifier, password, client)
    now = rt.clock.now()
    with refund_on_failure(rt, verified, client):
        resolved = _link(rt, waiting, account, now, client)
    with pending.reopened_on_failure(rt, waiting, now):
        return linking.complete(rt, resolved, client, verified)


def _get_pending(rt: Runtime, token: str) -> PendingIdentity:
    """Return the pending identity, if its provider is enabled."""
    with rt.reading() as session:
        waiting = pending.get_open(rt, session, token)
        pending.provider_of(session, waiting)
    return waiting


def _link(
    rt: Runtime, waiting: PendingIdentity, seen: Account, now: datetime, client: Client
) -> ResolvedSignIn:
    """Consume the pending identity for an account unchanged since its password was checked.

    If the identity is already linked to this account, only the sign-in is recorded.
    Raises: CredentialsFailed if the account has changed, AccountDisabled, PendingActivation,
    ContactVerificationInvalid if no longer pending, ProviderDisabled, PolicyDenied, LinkConflict.
    """
    profile = pending.profile_of(waiting)
    with rt.transaction() as session:
        provider = linking.lock_identity(
            session, waiting.provider_id, profile, gone=ContactVerificationInvalid
        )
        account = users_queries.lock_and_find(session, seen.id)
        if account is None or account.session_version != seen.session_version:
            raise CredentialsFailed
        if account.created_at != seen.created_at:  # SQLite reuses the ids of deleted accounts
            raise CredentialsFailed
        linking.require_verified_email(account)
        if not queries.consume(session, waiting, now):
            raise ContactVerificationInvalid
        identity = queries.find_identity(session, profile.namespace, profile.subject)
        if identity is not None and identity.user_id != account.id:
            raise PolicyDenied
        if identity is not None and queries.touch_identity(session, identity, now):
            return ResolvedSignIn(account, provider, profile)
        resolved = ResolvedSignIn(account, provider, profile, is_new_link=True)
        linking.link(rt, session, resolved, client, email_snapshot=None)
        return resolved
