"""Use cases of public registration."""

from datetime import timedelta

from sqlalchemy.orm import Session

from app.audit import service as audit
from app.audit.models import Action, EntityType
from app.contact_verification import tokens
from app.contact_verification.models import Purpose
from app.core.client import Client
from app.core.runtime import Runtime
from app.login.errors import PasswordLoginDisabled
from app.mail import service as mail
from app.mail.templates import Template
from app.registration.errors import RegistrationDisabled
from app.settings import keys
from app.setup import service as setup
from app.setup.errors import SystemNotInitialized
from app.storage_policies import queries as storage_queries
from app.users import identifiers
from app.users import queries as users_queries
from app.users import service as users
from app.users.errors import EmailBlocked, EmailInvalid
from app.users.models import Account, Status


def register(rt: Runtime, *, username: str, email: str, password: str, client: Client) -> Account:
    """Make an ordinary account; it waits for its activation where one is needed (decision A5).

    Raises: SystemNotInitialized, PasswordLoginDisabled, RegistrationDisabled, EmailBlocked,
    EmailNotAllowlisted, PasswordInvalid, UsernameInvalid, EmailInvalid, UsernameExists,
    EmailExists, IdentifierExists; the first in this order.
    Source: spec 01 §4; decision A24.
    """
    with rt.reading() as connection:
        setup.require_ready(connection)
    _require_open(rt)
    _require_allowed(rt, email)
    users.require_acceptable(password)
    identifiers.username(username)  # `create` checks both again; a hash is too dear for nothing
    identifiers.email(email)
    password_hash = rt.passwords.hash(password)
    quota = rt.settings.get(keys.DEFAULT_STORAGE_QUOTA)
    needs_activation, terms = is_activation_needed(rt), _terms(rt)
    now = rt.clock.now()
    with rt.transaction() as session:
        # No lock: an ordinary account never changes the set-up state, and what leaves READY right
        # now might as well have left it right after.
        group_id = storage_queries.find_default_group_id(session)
        if group_id is None:
            raise SystemNotInitialized
        new = users.NewUser(
            username=username,
            email=email,
            password_hash=password_hash,
            activated_at=None if needs_activation else now,
            storage_quota=quota,
            policy_group_id=group_id,
        )
        account = users.create(session, new, now)
        if needs_activation:
            _send_activation(rt, session, account, *terms)
        _record(rt, session, Action.USER_REGISTER, account, client)
    return account


def resend_activation(rt: Runtime, *, identifier: str, client: Client) -> None:
    """Send the activation mail once more to an account that waits for it.

    Nothing tells whether one was sent: unknown, disabled, activated and blocked accounts, and those
    that were written to a moment ago, are passed over in silence.
    Raises: PasswordLoginDisabled. Source: spec 01 §4.
    """
    if not rt.settings.get(keys.PASSWORD_LOGIN_ENABLED):
        raise PasswordLoginDisabled
    with rt.reading() as connection:
        found = users_queries.find_by_identifier(connection, identifiers.identifier(identifier))
    if found is None or not _is_waiting(found) or _is_blocked(rt, found.email):
        return
    terms = _terms(rt)
    with rt.transaction() as session:
        users_queries.lock(session, found.id)
        account = users_queries.find_account(session, found.id)
        if account is None or not _is_waiting(account):
            return  # it was disabled, activated or deleted meanwhile
        if _send_activation(rt, session, account, *terms):
            _record(rt, session, Action.USER_RESEND_REGISTRATION, account, client)


def is_activation_needed(rt: Runtime) -> bool:
    """Tell whether a new account must prove its address first; `auto` asks if mail leaves at all.

    Source: decision A5.
    """
    wanted = rt.settings.get(keys.REGISTER_ACTIVATION)
    return wanted == "true" or (wanted == "auto" and mail.is_smtp_configured(rt))


def _require_open(rt: Runtime) -> None:
    if not rt.settings.get(keys.PASSWORD_LOGIN_ENABLED):
        raise PasswordLoginDisabled
    if not rt.settings.get(keys.ALLOW_USER_REGISTRATION):
        raise RegistrationDisabled


def _require_allowed(rt: Runtime, typed: str) -> None:
    """Apply the e-mail policy, which comes before every rule of form.

    What is no address is on no list; it is refused when its own turn comes.
    """
    try:
        address = identifiers.email(typed)
    except EmailInvalid:
        return
    users.require_allowed_address(rt, address)


def _is_waiting(account: Account) -> bool:
    """Tell whether an account waits for its activation (decision A4)."""
    return account.status == Status.ACTIVE and account.activated_at is None


def _is_blocked(rt: Runtime, address: str) -> bool:
    try:
        users.require_not_blocked(rt, address)
    except EmailBlocked:
        return True
    return False


def _terms(rt: Runtime) -> tuple[timedelta, timedelta]:
    """Return how long a token lives, and how old it gets before it is replaced."""
    return (
        timedelta(seconds=rt.settings.get(keys.REGISTER_ACTIVATION_TTL_SECONDS)),
        timedelta(seconds=rt.settings.get(keys.CONTACT_COOLDOWN_SECONDS)),
    )


def _send_activation(
    rt: Runtime, session: Session, account: Account, life: timedelta, cooldown: timedelta
) -> bool:
    """Write the mail with a new token; False while the last token is too young."""
    purpose, address = Purpose.REGISTER_ACTIVATION, account.email
    token = tokens.issue(rt, session, account.id, purpose, address, life=life, cooldown=cooldown)
    if token is None:
        return False
    mail.queue(
        rt,
        session,
        Template.REGISTER_ACTIVATION,
        account.email,
        username=account.username,
        token=token,
    )
    return True


def _record(
    rt: Runtime, session: Session, action: Action, account: Account, client: Client
) -> None:
    audit.record(
        rt,
        session,
        action,
        EntityType.USER,
        client=client,
        user_id=account.id,
        entity_id=account.id,
        entity_name=account.username,
    )
