"""What operators do with the access tokens of an account; the owner is notified by mail."""

from collections.abc import Collection, Sequence

from app.access_tokens import queries
from app.access_tokens import service as tokens
from app.access_tokens.errors import AccessTokenNotFound
from app.access_tokens.models import AccessToken
from app.core.access import Operator, Scope, SwitchedOff
from app.core.runtime import Runtime
from app.settings import keys
from app.user_admin.service import locked, require_not_own
from app.users import service as users


def list_of(rt: Runtime, who: str | int) -> Sequence[AccessToken]:
    """Return an account's tokens, newest first; expired ones for 30 days.

    Raises: UserNotFound.
    """
    with rt.reading() as session:
        return tokens.list_of(rt, session, users.named(session, who).id)


def create(
    rt: Runtime,
    by: Operator,
    who: str | int,
    *,
    name: str,
    scopes: Collection[Scope],
    days: int | None,
) -> tuple[str, AccessToken]:
    """Make a token for an account, from the command line; return its text, and the rest.

    Raises: UserNotFound, SwitchedOff, access_tokens.errors.CREATE.
    """
    if not rt.settings.get(keys.ACCESS_TOKENS_ENABLED):
        raise SwitchedOff("Access tokens are switched off.")
    with locked(rt, by, who) as (session, account):
        return tokens.make(rt, session, by, account, name=name, scopes=scopes, days=days)


def remove(rt: Runtime, by: Operator, who: str | int, token_id: int) -> AccessToken:
    """Remove a token of an account; return what it was. Raises: errors.REMOVE_TOKEN."""
    with locked(rt, by, who) as (session, account):
        require_not_own(by, account)
        token = tokens.get(session, account.id, token_id)
        tokens.remove(rt, session, by, account, [token])
    return token


def remove_any(rt: Runtime, by: Operator, token_id: int) -> AccessToken:
    """Remove a token of whatever account. Raises: AccessTokenNotFound."""
    with rt.reading() as session:
        token = queries.find(session, token_id)
    if token is None:
        raise AccessTokenNotFound
    return remove(rt, by, token.user_id, token_id)


def remove_all(rt: Runtime, by: Operator, who: str | int) -> int:
    """Remove all tokens of an account; return how many. Raises: UserNotFound, OwnAccount."""
    with locked(rt, by, who) as (session, account):
        require_not_own(by, account)
        found = tokens.list_of(rt, session, account.id)
        tokens.remove(rt, session, by, account, found)
    return len(found)
