"""Use cases of people and their own access tokens, each in a transaction of its own."""

from collections.abc import Collection, Sequence

from app.access_tokens import service as tokens
from app.access_tokens.models import AccessToken
from app.core.access import Operator, Principal, Scope
from app.core.client import Client
from app.core.runtime import Runtime
from app.sessions import service as sessions


def list_own(rt: Runtime, principal: Principal) -> Sequence[AccessToken]:
    """Return the caller's tokens, newest first."""
    with rt.reading() as session:
        return tokens.list_of(rt, session, principal.user_id)


def create(
    rt: Runtime,
    principal: Principal,
    client: Client,
    *,
    name: str,
    scopes: Collection[Scope],
    days: int | None,
) -> tuple[str, AccessToken]:
    """Make a token; return its text, which is shown once, and the rest.

    Raises: access_tokens.errors.CREATE; AccountDisabled, TokenInvalid if the account or session has
    just become invalid.
    """
    by = Operator(principal, client)
    with rt.transaction() as session:
        account = sessions.lock_account(rt, session, principal)
        return tokens.make(rt, session, by, account, name=name, scopes=scopes, days=days)


def rename(
    rt: Runtime, principal: Principal, client: Client, token_id: int, name: str
) -> AccessToken:
    """Rename a token.

    Raises: access_tokens.errors.RENAME; AccountDisabled, TokenInvalid as in `create`.
    """
    with rt.transaction() as session:
        account = sessions.lock_account(rt, session, principal)
        by = Operator(principal, client)
        return tokens.rename(rt, session, by, account, token_id, name)


def remove(rt: Runtime, principal: Principal, client: Client, token_id: int) -> None:
    """Remove a token.

    Raises: AccessTokenNotFound; AccountDisabled, TokenInvalid as in `create`.
    """
    with rt.transaction() as session:
        account = sessions.lock_account(rt, session, principal)
        token = tokens.get(session, account.id, token_id)
        tokens.remove(rt, session, Operator(principal, client), account, [token])


def remove_all(rt: Runtime, principal: Principal, client: Client) -> int:
    """Remove all tokens; return how many.

    Raises: AccountDisabled, TokenInvalid as in `create`.
    """
    with rt.transaction() as session:
        account = sessions.lock_account(rt, session, principal)
        found = tokens.list_of(rt, session, account.id)
        tokens.remove(rt, session, Operator(principal, client), account, found)
    return len(found)
