"""What operators do about an account's e-mail address, and by mail to it."""

from app.audit.models import Action
from app.contact_verification import tokens
from app.contact_verification.models import LinkPurpose
from app.core.access import Operator
from app.core.errors import RateLimited
from app.core.runtime import Runtime
from app.login import sign_in_methods
from app.user_admin.errors import MailUnwanted
from app.user_admin.service import locked, require_not_own
from app.users import identifiers
from app.users import queries as users_queries
from app.users import service as users
from app.users.models import Account, Role, Standing


def set_email(
    rt: Runtime, by: Operator, who: str | int, email: str, *, is_verified: bool = False
) -> Account:
    """Replace the address, say of somebody who mistyped it when registering.

    Links mailed before become void and a pending change is dropped; sessions go on. A verified
    address also activates an account that waits for it. The lists of allowed and blocked addresses
    are for those who register themselves. Raises: errors.SET_EMAIL.
    """
    address = identifiers.email(email)
    with locked(rt, by, who) as (session, account):
        require_not_own(by, account)
        if (account.email, account.email_verified) == (address, is_verified):
            return account
        users.reserve_address(session, address, user_id=account.id)
        tokens.void(session, account.id)
        now = rt.clock.now()
        columns = {
            "email": address,
            "email_verified_at": now if is_verified else None,
            "proven_at": now if is_verified else None,
            "activated_at": account.activated_at or (now if is_verified else None),
        }
        users_queries.set_columns(session, account.id, now, **columns)
        details = {
            "email": address,
            "previous_email": account.email,
            "email_verified": is_verified,
            "previous_email_verified": account.email_verified,
        }
        users.record_by(rt, session, by, Action.ADMIN_SET_USER_EMAIL, account, details)
        # To the old address, and without the new one: it may have been a stranger's all along.
        sentence = "An administrator changed the e-mail address of the account."
        users.notify_owner(rt, session, account, sentence)
        if account.role == Role.ADMIN:
            event = f"The e-mail address of the administrator {account.username} was changed"
            users.notify_administrators(rt, session, by, event)
        return users.get(session, account.id)


def send_reset_mail(rt: Runtime, by: Operator, who: str | int) -> Account:
    """Mail the account the link by which its owner sets a new password.

    Raises: errors.SEND_RESET_MAIL; RateLimited within the cooldown of the last such mail.
    """
    sign_in_methods.require_password_login(rt)
    with locked(rt, by, who) as (session, account):
        if account.standing is not Standing.ACTIVE or not account.email_verified:
            raise MailUnwanted
        reset = LinkPurpose.PASSWORD_RESET, account.email
        if seconds := tokens.seconds_left(rt, session, account.id, *reset):
            raise RateLimited(retry_after=seconds)
        tokens.send(rt, session, account, *reset, is_answer=False)
        users.record_by(rt, session, by, Action.USER_REQUEST_PASSWORD_RESET, account)
    return account
