"""The ways in which an account can sign in.

Each area that provides one registers a predicate for whether an account can use it
(`rt.hooks.sign_in_methods`) and, unless it is the password, a function by which a password reset
removes it from an account whose address nobody had verified before
(`rt.hooks.on_unverified_reset`).
"""

from collections.abc import Callable

from sqlalchemy.orm import Session

from app.core.runtime import Runtime
from app.login.errors import EmailCodeSignInDisabled, PasswordLoginDisabled
from app.settings import keys
from app.settings import service as settings
from app.users import queries as users_queries


def by_password(rt: Runtime) -> Callable[[Session, int], bool]:
    """Return a predicate for whether an account has a password it may use."""
    is_enabled = rt.settings.get(keys.PASSWORD_LOGIN_ENABLED)
    find_hash = users_queries.find_password_hash
    return lambda session, user_id: is_enabled and find_hash(session, user_id) is not None


def require_password_login(rt: Runtime) -> None:
    """Refuse while password login is disabled.

    Raises: PasswordLoginDisabled.
    """
    if not rt.settings.get(keys.PASSWORD_LOGIN_ENABLED):
        raise PasswordLoginDisabled


def require_email_code_sign_in(rt: Runtime) -> None:
    """Refuse while nobody signs in with a mailed code.

    Raises: EmailCodeSignInDisabled.
    """
    if not settings.is_email_code_sign_in_open(rt):
        raise EmailCodeSignInDisabled


def by_any_method(rt: Runtime) -> Callable[[Session, int], bool]:
    """Return a predicate for whether an account can sign in at all; call before the transaction."""
    checks = [method(rt) for method in rt.hooks.sign_in_methods]
    return lambda session, user_id: any(can_sign_in(session, user_id) for can_sign_in in checks)
