"""Steps on pending identities: verified, but without an account."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta

from sqlalchemy.orm import Session

from app.contact_verification.errors import ContactVerificationInvalid
from app.core.database.database import DATABASE_ERRORS
from app.core.runtime import Runtime
from app.core.tokens import digest, random_hex
from app.external_auth import queries
from app.external_auth.drivers.interface import ExternalProfile
from app.external_auth.errors import FlowTokenInvalid, ProviderDisabled
from app.external_auth.models import PendingIdentity, Provider

PREFIX = "oev_"
LIFE = timedelta(seconds=1800)
MAX_TOKEN_BYTES = 128


def open_pending(
    rt: Runtime, session: Session, provider: Provider, profile: ExternalProfile, return_path: str
) -> str:
    """Store a pending identity; return its flow token."""
    token, now = PREFIX + random_hex(), rt.clock.now()
    session.add(
        PendingIdentity(
            provider_id=provider.id,
            identity_namespace=profile.namespace,
            subject=profile.subject,
            display_name_snapshot=profile.display_name,
            preferred_username_snapshot=profile.preferred_username,
            return_path=return_path,
            flow_token_digest=digest(token),
            created_at=now,
            expires_at=now + LIFE,
        )
    )
    return token


def get_open(rt: Runtime, session: Session, token: str) -> PendingIdentity:
    """Return the pending identity with a well-formed flow token.

    Raises: ContactVerificationInvalid if there is none, or it is consumed or expired.
    """
    pending = queries.find_pending(session, digest(token))
    if pending is None or pending.consumed_at or pending.expires_at <= rt.clock.now():
        raise ContactVerificationInvalid
    return pending


@contextmanager
def reopened_on_failure(
    rt: Runtime, pending: PendingIdentity, consumed_at: datetime
) -> Iterator[None]:
    """Undo the consumption of a pending identity if the block fails.

    Best effort: while the database is unavailable the identity stays consumed.
    """
    try:
        yield
    except BaseException:
        with suppress(*DATABASE_ERRORS), rt.transaction() as session:
            queries.reopen(session, pending, consumed_at)
        raise


def provider_of(session: Session, pending: PendingIdentity) -> Provider:
    """Return the provider of a pending identity, without locking it.

    Raises: ProviderDisabled; ContactVerificationInvalid if it was deleted meanwhile.
    """
    provider = queries.find_provider(session, pending.provider_id)
    if provider is None:
        raise ContactVerificationInvalid
    if not provider.enabled:
        raise ProviderDisabled
    return provider


def flow_token(typed: str) -> str:
    """Return a flow token without surrounding whitespace.

    Raises: FlowTokenInvalid if the text cannot be one.
    """
    token = typed.strip()
    if not token or len(token.encode()) > MAX_TOKEN_BYTES or any(map(str.isspace, token)):
        raise FlowTokenInvalid
    return token


def profile_of(pending: PendingIdentity) -> ExternalProfile:
    """Return the stored part of the identity's profile, which excludes its email address."""
    return ExternalProfile(
        namespace=pending.identity_namespace,
        subject=pending.subject,
        display_name=pending.display_name_snapshot,
        preferred_username=pending.preferred_username_snapshot,
    )
