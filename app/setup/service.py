"""Use cases and steps of the set-up."""

import json
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.orm import Session

from app.audit.models import Action
from app.core.client import Client
from app.core.runtime import Runtime
from app.settings import keys
from app.settings import queries as settings_queries
from app.settings import service as settings
from app.setup import queries
from app.setup.errors import SystemAlreadyInitialized, SystemNotInitialized
from app.setup.queries import Facts, SetupState, state_of
from app.storage_policies import queries as storage_queries
from app.store import locks
from app.users import service as users
from app.users.models import Account, Role, User
from app.web import site


@dataclass(frozen=True)
class PublicState:
    """What anyone may know about the installation; nothing about any single account."""

    setup_state: SetupState
    has_users: bool
    allow_user_registration: bool
    passkey_login_enabled: bool
    password_login_enabled: bool
    email_code_sign_in_enabled: bool


def public_state(rt: Runtime) -> PublicState:
    """Return the set-up state and the enabled ways to register and sign in."""
    with rt.reading() as session:
        facts = queries.facts(session)
    passwords = rt.settings.get(keys.PASSWORD_LOGIN_ENABLED)
    return PublicState(
        setup_state=state_of(facts),
        has_users=facts.has_users,
        allow_user_registration=passwords and rt.settings.get(keys.ALLOW_USER_REGISTRATION),
        passkey_login_enabled=rt.settings.get(keys.PASSKEY_LOGIN_ENABLED),
        password_login_enabled=passwords,
        email_code_sign_in_enabled=settings.is_email_code_sign_in_open(rt),
    )


def current_state(session: Session) -> SetupState:
    """Return the set-up state."""
    return state_of(queries.facts(session))


def require_ready(session: Session) -> None:
    """Refuse to create an ordinary account before the installation is ready.

    Raises: SystemNotInitialized.
    """
    if current_state(session) is not SetupState.READY:
        raise SystemNotInitialized


def get_group_id_for_new_account(session: Session) -> int:
    """Return the id of a new ordinary account's policy group, locked until the transaction ends.

    Raises: SystemNotInitialized, also if the group went away between the two queries.
    """
    require_ready(session)
    group_id = storage_queries.find_default_group_id(session)
    if group_id is None:
        raise SystemNotInitialized
    return group_id


def require_ready_now(rt: Runtime) -> None:
    """Like `require_ready`, before a transaction, within which it may have to be repeated.

    Raises: SystemNotInitialized.
    """
    with rt.reading() as session:
        require_ready(session)


def create_first_admin(
    rt: Runtime, *, username: str, email: str, password: str, origin: str | None, client: Client
) -> Account:
    """Create the first administrator; of concurrent calls exactly one succeeds.

    `origin` is the origin at which the caller reached the service, None if unknown; it becomes the
    site's URL if none is set. Raises: errors.SET_UP.
    """
    with rt.reading() as session:
        _require_untouched(queries.facts(session))
    users.require_acceptable(rt, password, username, email)
    password_hash = rt.passwords.hash(password)
    quota = rt.settings.get(keys.DEFAULT_STORAGE_QUOTA)
    now = rt.clock.now()
    with rt.transaction() as session:
        locks.hold(session, locks.SETUP)
        _require_untouched(queries.facts(session))
        new = User(
            username=username,
            email=email,
            password_hash=password_hash,
            role=Role.ADMIN,
            activated_at=now,
            email_verified_at=now,
            proven_at=now,
            storage_quota=quota,
            policy_group_id=storage_queries.find_default_group_id(session),
        )
        account = users.create(session, new, now)
        if origin is not None:
            _learn_address(session, origin, now)
        users.record(rt, session, Action.SYSTEM_SETUP, account, client)
    settings.announce(rt)
    return account


def _require_untouched(facts: Facts) -> None:
    if facts.has_users:
        raise SystemAlreadyInitialized


def _learn_address(session: Session, origin: str, now: datetime) -> None:
    """Store what the caller's origin reveals: the site's URL, and that cookies can be Secure."""
    locks.hold(session, locks.SETTINGS)
    stored = settings_queries.find(session, site.PUBLIC_SITE_URL.name)
    if not site.PUBLIC_SITE_URL.value_of(stored.value if stored else None):
        address = json.dumps([site.storable_origin(origin)])
        settings_queries.store(session, site.PUBLIC_SITE_URL.name, address, now)
    if origin.startswith("https://"):
        settings_queries.store(session, site.COOKIE_SECURE.name, "true", now)
