"""Statements on providers, links and pending identities."""

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import ColumnElement, delete, exists, func, select, update
from sqlalchemy.orm import Session, aliased, joinedload

from app.external_auth.models import Identity, PendingIdentity, Provider, ProviderKind
from app.passkeys.models import Passkey
from app.store import bulk
from app.users.models import User


def find_provider_by_key(session: Session, kind: ProviderKind, key: str) -> Provider | None:
    """Return the provider of this kind and key, or None."""
    return session.scalar(select(Provider).filter_by(provider_kind=kind, key=key))


def lock_provider(session: Session, provider_id: int) -> Provider | None:
    """Return the provider, locked against deletion until the transaction ends, or None."""
    # FOR KEY SHARE: concurrent sign-ins with one provider do not block each other.
    statement = select(Provider).where(Provider.id == provider_id)
    return session.scalar(
        statement.with_for_update(read=True, key_share=True).execution_options(
            populate_existing=True
        )
    )


def list_providers(session: Session, *conditions: ColumnElement[bool]) -> list[Provider]:
    """Return the providers that fulfil all conditions, by display name, then id."""
    found = session.scalars(select(Provider).where(*conditions))
    # Sorted here, since collations differ between databases.
    return sorted(found, key=lambda provider: (provider.display_name, provider.id))


def is_any_enabled(session: Session) -> bool:
    """Return whether any provider is enabled."""
    return bool(session.scalar(select(exists().where(Provider.enabled))))


def replace_secret(session: Session, provider: Provider, new: str) -> bool:
    """Replace a secret's ciphertext with a new one; False if the secret was changed meanwhile."""
    same = Provider.id == provider.id, Provider.client_secret == provider.client_secret
    return bulk.change(session, update(Provider).where(*same).values(client_secret=new)) == 1


def find_identity(session: Session, namespace: str, subject: str) -> Identity | None:
    """Return the link of an identity, or None."""
    return session.scalar(select(Identity).filter_by(identity_namespace=namespace, subject=subject))


def is_linkable(session: Session, user_id: int, provider_id: int, subject: str) -> bool:
    """Return whether neither the account nor the subject has a link at this provider yet."""
    theirs = (Identity.user_id == user_id) | (Identity.subject == subject)
    return not session.scalar(select(exists().where(Identity.provider_id == provider_id, theirs)))


def touch_identity(session: Session, identity: Identity, now: datetime, **snapshots: str) -> bool:
    """Record a sign-in and new snapshots; return False if the link was removed meanwhile."""
    same = Identity.id == identity.id, Identity.user_id == identity.user_id
    statement = update(Identity).where(*same)
    noted = statement.values(last_login_at=now, updated_at=now, **snapshots)
    return bulk.change(session, noted) == 1


def list_links(session: Session, user_id: int) -> list[Identity]:
    """Return the links of an account with their providers, unordered."""
    statement = select(Identity).where(Identity.user_id == user_id)
    return list(session.scalars(statement.options(joinedload(Identity.provider))))


def count_links(session: Session, provider_id: int) -> dict[str, int]:
    """Return the number of a provider's links in each namespace."""
    namespace = Identity.identity_namespace
    statement = select(namespace, func.count()).where(Identity.provider_id == provider_id)
    return dict(session.execute(statement.group_by(namespace)).all())


def read_use(
    session: Session, provider_ids: Collection[int]
) -> dict[int, tuple[int, datetime | None]]:
    """Return how many links each provider has, and when one was last used."""
    statement = select(Identity.provider_id, func.count(), func.max(Identity.last_login_at))
    its_links = statement.where(Identity.provider_id.in_(provider_ids))
    rows = session.execute(its_links.group_by(Identity.provider_id))
    return {row[0]: (row[1], row[2]) for row in rows}


def list_namespaces(session: Session) -> list[str]:
    """Return the namespaces of all links."""
    return list(session.scalars(select(Identity.identity_namespace).distinct()))


def count_dependents(
    session: Session,
    provider_id: int,
    *,
    with_passwords: bool,
    with_passkeys: bool,
    namespaces: Collection[str],
) -> int:
    """Return how many accounts have a link at this provider and no other way to sign in.

    Passwords and passkeys are ways while they are switched on; so are links at other enabled
    providers, of these namespaces.
    """
    other = aliased(Identity)
    ways = [
        exists()
        .where(other.user_id == Identity.user_id, other.provider_id != provider_id)
        .where(other.identity_namespace.in_(namespaces))
        .where(Provider.id == other.provider_id, Provider.enabled)
    ]
    if with_passwords:
        ways.append(exists().where(User.id == Identity.user_id, User.password_hash.is_not(None)))
    if with_passkeys:
        ways.append(exists().where(Passkey.user_id == Identity.user_id))
    theirs = select(func.count()).where(Identity.provider_id == provider_id)
    return session.scalar(theirs.where(*(~way for way in ways))) or 0


def remove_links(session: Session, user_id: int) -> int:
    """Delete all links of an account; return how many."""
    return bulk.change(session, delete(Identity).where(Identity.user_id == user_id))


def list_enabled_namespaces(session: Session, user_id: int) -> list[str]:
    """Return the namespaces of an account's links at enabled providers."""
    statement = select(Identity.identity_namespace).join(Provider)
    return list(session.scalars(statement.where(Identity.user_id == user_id, Provider.enabled)))


def find_pending(session: Session, flow_token_digest: str) -> PendingIdentity | None:
    """Return the pending identity with this flow token, even if consumed or expired, or None."""
    return session.scalar(select(PendingIdentity).filter_by(flow_token_digest=flow_token_digest))


def find_pending_by_mail(session: Session, digest: str) -> PendingIdentity | None:
    """Return the pending identity with this mailed token, even if consumed or expired, or None."""
    return session.scalar(select(PendingIdentity).filter_by(verification_token_digest=digest))


def lock_pending(session: Session, pending_id: int) -> PendingIdentity | None:
    """Return a pending identity as it is now, locked until the transaction ends, or None.

    Locked after its identity and its provider: whoever deletes a provider takes them in that order.
    """
    return session.get(PendingIdentity, pending_id, populate_existing=True, with_for_update=True)


def delete_expired(session: Session, before: datetime, most: int) -> int:
    """Delete up to `most` pending identities that expired before `before`; return how many."""
    expired = select(PendingIdentity.id).where(PendingIdentity.expires_at < before).limit(most)
    return bulk.change(session, delete(PendingIdentity).where(PendingIdentity.id.in_(expired)))
