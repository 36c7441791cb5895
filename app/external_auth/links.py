"""Use cases on the links of a signed-in account."""

from collections.abc import Callable
from datetime import datetime

from sqlalchemy.orm import Session

from app.audit import service as audit
from app.audit.models import Action, EntityType, Event
from app.core.access import Principal
from app.core.client import Client
from app.core.runtime import Runtime
from app.core.texts import parsed_id
from app.external_auth import queries
from app.external_auth.drivers import DRIVERS
from app.external_auth.errors import LinkNotFound
from app.external_auth.models import Identity, Provider
from app.external_auth.providers.service import list_enabled, may_assert
from app.login import sign_in_methods
from app.login.errors import LastWayIn
from app.sessions import service as sessions
from app.users import service as users
from app.users.models import Account


def list_links(rt: Runtime, user_id: int) -> list[Identity]:
    """Return an account's links, most recently used first, with those at disabled providers."""

    def used_last(link: Identity) -> tuple[datetime, datetime, int]:
        return link.last_login_at or link.created_at, link.created_at, link.id

    with rt.reading() as session:
        return sorted(queries.list_links(session, user_id), key=used_last, reverse=True)


def remove(rt: Runtime, principal: Principal, link_id: str, *, client: Client) -> None:
    """Remove a link, unless it is the account's last way to sign in; sessions stay open.

    Raises: LinkNotFound, LastWayIn; AccountDisabled, TokenInvalid if access ended meanwhile.
    """
    can_sign_in = sign_in_methods.by_any_method(rt)
    wanted = parsed_id(link_id)
    with rt.transaction() as session:
        account = sessions.lock_account(rt, session, principal)
        link = take(session, account, wanted)
        if not can_sign_in(session, account.id):
            raise LastWayIn
        event = Event(
            Action.USER_EXTERNAL_AUTH_UNLINK,
            EntityType.EXTERNAL_AUTH_IDENTITY,
            client=client,
            user_id=account.id,
            entity_id=link.id,
            entity_name=link.provider.key,
            details=details(link),
        )
        audit.record(rt, session, event)
        users.notify_owner(rt, session, account, removal_notice(link))


def take(session: Session, account: Account, link_id: int | None) -> Identity:
    """Delete a link of an account, which the caller has locked, and return it.

    Raises: LinkNotFound.
    """
    mine = queries.list_links(session, account.id)
    link = next((one for one in mine if one.id == link_id), None)
    if link is None:
        raise LinkNotFound
    session.delete(link)
    session.flush()
    return link


def details(link: Identity) -> dict[str, object]:
    """Return what the audit log keeps of a link."""
    return {
        "provider_key": link.provider.key,
        "provider_name": link.provider.display_name,
        "issuer": link.identity_namespace,
        "subject": link.subject,
    }


def removal_notice(link: Identity) -> str:
    """Return the sentence of the mail to the owner of a link that is gone."""
    name = link.provider.display_name
    return f"A sign-in with {name} was removed. It cannot be used to sign in any more."


def by_external_link(rt: Runtime) -> Callable[[Session, int], bool]:
    """Return a predicate: whether an account can sign in with some enabled provider.

    Links that no enabled provider may assert any more, since an issuer changed, do not count.
    """
    return _by_link_at(rt, list_enabled(rt))


def by_dated_link(rt: Runtime) -> Callable[[Session, int], bool]:
    """Return the same predicate for providers that say when somebody signed in there."""
    enabled = list_enabled(rt)
    return _by_link_at(
        rt, [one for one in enabled if DRIVERS[one.provider_kind].tells_sign_in_time]
    )


def _by_link_at(rt: Runtime, providers: list[Provider]) -> Callable[[Session, int], bool]:
    def can_sign_in(session: Session, user_id: int) -> bool:
        return any(
            may_assert(rt, provider, namespace)
            for namespace in queries.list_enabled_namespaces(session, user_id)
            for provider in providers
        )

    return can_sign_in
