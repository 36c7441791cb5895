"""The owner shuts everybody out of an account, fearing that somebody else is in it."""

from app.audit.models import Action
from app.contact_verification import tokens
from app.contact_verification.models import LinkPurpose
from app.core.access import Principal
from app.core.client import Client
from app.core.runtime import Runtime
from app.mfa import service as mfa
from app.sessions import service as sessions
from app.settings import keys
from app.users import queries as users_queries
from app.users import service as users

LOCKED = "The account was locked on its own page: it was signed out everywhere."


def lock(rt: Runtime, principal: Principal, client: Client) -> None:
    """End every session and void every link and flow; the password must be changed.

    The owner gets a link to set a new password, where passwords are in use. It needs no
    confirmation, as it gives an intruder nothing.
    Raises: AccountDisabled, TokenInvalid if the account or session ended meanwhile.
    """
    uses_passwords = rt.settings.get(keys.PASSWORD_LOGIN_ENABLED)
    with rt.transaction() as session:
        account = sessions.lock_account(rt, session, principal)
        has_password = users_queries.find_password_hash(session, account.id) is not None
        if has_password:
            now = rt.clock.now()
            users_queries.set_columns(session, account.id, now, must_change_password=True)
        removed = sessions.revoke_all(rt, session, account.id)
        tokens.void(session, account.id)
        if has_password and uses_passwords:
            tokens.send(rt, session, account, LinkPurpose.PASSWORD_RESET, account.email)
        users.notify_owner(rt, session, account, LOCKED)
        details = {"removed": removed}
        users.record(rt, session, Action.USER_LOCK_ACCOUNT, account, client, details)
    mfa.discard_flows(rt, principal.user_id)
