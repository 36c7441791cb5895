"""By which ways an account can sign in (decisions A26, E26).

Each area that has a way hands in what tells whether an account can use it (`Runtime.ways_in`), and
what removes those that were opened before anybody had shown that the account's address is theirs
(`Runtime.dropped_by_reset`).
"""

from collections.abc import Callable

from sqlalchemy.orm import Session

from app.core.runtime import Runtime
from app.login.errors import PasswordLoginDisabled
from app.settings import keys
from app.users import queries as users_queries


def by_password(rt: Runtime) -> Callable[[Session, int], bool]:
    """Return what tells whether an account has a password it may use."""
    is_enabled = rt.settings.get(keys.PASSWORD_LOGIN_ENABLED)
    return lambda session, user_id: is_enabled and users_queries.has_password(session, user_id)


def require_password_login(rt: Runtime) -> None:
    """Refuse while passwords are switched off.

    Raises: PasswordLoginDisabled.
    """
    if not rt.settings.get(keys.PASSWORD_LOGIN_ENABLED):
        raise PasswordLoginDisabled


def any_of(rt: Runtime) -> Callable[[Session, int], bool]:
    """Return what tells whether an account can sign in at all; called before the transaction."""
    ways = [way(rt) for way in rt.ways_in]
    return lambda session, user_id: any(way(session, user_id) for way in ways)
