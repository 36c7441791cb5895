"""Finding identities that wait, by the tokens that were given for them."""

from datetime import datetime

from sqlalchemy.orm import Session

from app.contact_verification.errors import ContactVerificationExpired, ContactVerificationInvalid
from app.core.clock import SKEW
from app.core.runtime import Runtime
from app.crypto.tokens import digest
from app.external_auth import queries
from app.external_auth.errors import FlowTokenInvalid, ProviderDisabled
from app.external_auth.models import PendingIdentity, Provider

MAX_TOKEN_BYTES = 128


def provider_of(session: Session, pending: PendingIdentity) -> Provider:
    """Return the provider of a pending identity, without locking it.

    Raises: ProviderDisabled; ContactVerificationInvalid if it was deleted meanwhile.
    """
    provider = session.get(Provider, pending.provider_id)
    if provider is None:
        raise ContactVerificationInvalid
    if not provider.enabled:
        raise ProviderDisabled
    return provider


def checked_token(typed: str) -> str:
    """Return a flow token without surrounding whitespace.

    Raises: FlowTokenInvalid if the text cannot be one.
    """
    token = typed.strip()
    if not token or len(token.encode()) > MAX_TOKEN_BYTES or any(map(str.isspace, token)):
        raise FlowTokenInvalid
    return token


def get_open(rt: Runtime, session: Session, token: str) -> PendingIdentity:
    """Return the pending identity with a well-formed flow token.

    Raises: ContactVerificationInvalid if there is none, or it is consumed or expired.
    """
    return _checked(queries.find_pending(session, digest(token)), rt.clock.now())


def locked(session: Session, waiting: PendingIdentity, now: datetime) -> PendingIdentity:
    """Return a pending identity as it is now, locked; raises what `get_open` raises."""
    return _checked(queries.lock_pending(session, waiting.id), now)


def _checked(waiting: PendingIdentity | None, now: datetime) -> PendingIdentity:
    if waiting is None or waiting.consumed_at or _is_over(waiting, now):
        raise ContactVerificationInvalid
    return waiting


def _is_over(waiting: PendingIdentity, now: datetime) -> bool:
    return waiting.expires_at <= now or waiting.created_at > now + SKEW


def require_unmailed(waiting: PendingIdentity) -> None:
    """Refuse one for which a mail was asked for already.

    Raises: ContactVerificationInvalid.
    """
    if waiting.email_requested_at is not None:
        raise ContactVerificationInvalid


def get_mailed(session: Session, token: str, now: datetime) -> PendingIdentity:
    """Return the pending identity of a mailed link.

    Raises: ContactVerificationInvalid, ContactVerificationExpired.
    """
    waiting = queries.find_pending_by_mail(session, digest(token))
    if waiting is None or waiting.consumed_at is not None:
        raise ContactVerificationInvalid
    if _is_over(waiting, now):
        raise ContactVerificationExpired
    return waiting
