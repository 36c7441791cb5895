"""Use cases of passwords."""

from app.audit import service as audit
from app.audit.models import Action, EntityType
from app.core.client import Client
from app.core.runtime import Runtime
from app.core.tokens import TokenPair
from app.login.errors import CredentialsFailed
from app.login.service import attempts_key_of
from app.passwords.errors import PasswordUnchanged
from app.sessions import service as sessions
from app.sessions.errors import TokenInvalid
from app.users import queries as users_queries
from app.users import service as users
from app.users.models import Account


def change_password(
    rt: Runtime,
    account: Account,
    session_id: str,
    *,
    current_password: str,
    new_password: str,
    client: Client,
) -> TokenPair:
    """Replace the password, end every session and open a new, unrestricted one.

    `session_id` is the caller's own; if it ends, or the account changes, while the passwords are
    computed, nothing is changed. Guesses at the current password count like failed logins.
    Raises: RateLimited, CredentialsFailed, PasswordUnchanged, PasswordInvalid, TokenInvalid.
    Source: spec 01 §7.7.
    """
    old_hash = users_queries.find_password_hash(rt.database, account.id)
    attempts_key = attempts_key_of(account, "")
    rt.failed_secrets.reserve(attempts_key, client.network)
    if old_hash is None or not rt.passwords.check(current_password, old_hash).matches:
        raise CredentialsFailed
    rt.failed_secrets.clear(attempts_key, client.network)
    if new_password == current_password:
        raise PasswordUnchanged
    users.require_acceptable(new_password)
    new_hash = rt.passwords.hash(new_password)
    return _replace(rt, account, session_id, old_hash, new_hash, client)


def _replace(
    rt: Runtime, account: Account, session_id: str, old_hash: str, new_hash: str, client: Client
) -> TokenPair:
    now = rt.clock.now()
    with rt.transaction() as session:
        seen = (account.status, account.session_version)
        is_unchanged = users_queries.lock_version(session, account.id) == seen
        if not is_unchanged or not sessions.is_live(rt, session, session_id):
            raise TokenInvalid
        if not users_queries.change_password(session, account.id, new_hash, now, old_hash=old_hash):
            raise CredentialsFailed  # a simultaneous change was faster
        sessions.revoke_all(rt, session, account.id)
        pair = sessions.open_session(rt, session, account.id, client, is_limited=False)
        audit.record(
            rt,
            session,
            Action.USER_CHANGE_PASSWORD,
            EntityType.USER,
            client=client,
            user_id=account.id,
            entity_id=account.id,
            entity_name=account.username,
        )
    return pair
