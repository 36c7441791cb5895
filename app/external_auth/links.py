"""Use cases on the links of a signed-in account (spec 03 §8.4, §8.5; decisions A26, E26)."""

from collections.abc import Callable
from datetime import datetime

from sqlalchemy.orm import Session

from app.audit import service as audit
from app.audit.models import Action, EntityType, Event
from app.core.access import Principal
from app.core.client import Client
from app.core.ids import parsed_id
from app.core.runtime import Runtime
from app.external_auth import notices, providers, queries
from app.external_auth.errors import LinkNotFound
from app.external_auth.models import Link
from app.login import sign_in_methods
from app.login.errors import LastWayIn
from app.sessions import service as sessions
from app.users import notices as owner_notices


def list_links(rt: Runtime, user_id: int) -> list[Link]:
    """Return an account's links, most recently used first, with those at disabled providers."""

    def used_last(link: Link) -> tuple[datetime, datetime, int]:
        return link.last_login_at or link.created_at, link.created_at, link.id

    return sorted(queries.list_links(rt.database, user_id), key=used_last, reverse=True)


def remove(rt: Runtime, principal: Principal, link_id: str, *, client: Client) -> None:
    """Remove a link, unless it is the account's last way to sign in; sessions stay open.

    Raises: LinkNotFound, LastWayIn; AccountDisabled, TokenInvalid if access ended meanwhile.
    """
    can_sign_in = sign_in_methods.by_any_method(rt)
    wanted = parsed_id(link_id)
    with rt.transaction() as session:
        account = sessions.lock_account(rt, session, principal)
        link = queries.find_link(session, account.id, wanted) if wanted is not None else None
        if link is None:
            raise LinkNotFound
        queries.remove_link(session, account.id, link.id)
        if not can_sign_in(session, account.id):
            raise LastWayIn
        event = Event(
            Action.USER_EXTERNAL_AUTH_UNLINK,
            EntityType.EXTERNAL_AUTH_IDENTITY,
            client=client,
            user_id=account.id,
            entity_id=link.id,
            entity_name=link.provider_key,
            details={
                "provider_key": link.provider_key,
                "issuer": link.issuer,
                "subject": link.subject,
            },
        )
        audit.record(rt, session, event)
        owner_notices.notify_owner(
            rt, session, account, notices.unlinked(link.provider_display_name)
        )


def by_external_link(rt: Runtime) -> Callable[[Session, int], bool]:
    """Return a predicate: whether an account can sign in with some enabled provider.

    Links that no enabled provider may assert any more, since an issuer changed, do not count.
    """
    enabled = providers.list_enabled(rt)

    def can_sign_in(session: Session, user_id: int) -> bool:
        return any(
            providers.may_assert(rt, provider, namespace)
            for namespace in queries.list_enabled_namespaces(session, user_id)
            for provider in enabled
        )

    return can_sign_in
