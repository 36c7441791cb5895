"""Access tokens: the check at each request, and what their owners and operators do with them."""

import logging
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

from sqlalchemy.orm import Session

from app.access_tokens import form, queries
from app.access_tokens.errors import (
    AccessTokenNotFound,
    TokenLifeInvalid,
    TokenNameInvalid,
    TokenNameTaken,
    TooManyTokens,
)
from app.access_tokens.models import MAX_NAME_LENGTH, AccessToken
from app.audit import service as audit
from app.audit.models import Action, EntityType
from app.core.access import (
    ADMIN_SCOPES,
    AdminRequired,
    Operator,
    Program,
    ProgramToken,
    Scope,
    TokenExpired,
    TokenInvalid,
)
from app.core.clock import SKEW
from app.core.config import Bucket
from app.core.runtime import Runtime
from app.core.texts import folded, has_controls
from app.crypto.tokens import digest
from app.settings import keys
from app.store import bulk
from app.store.database import DATABASE_ERRORS, reason_of
from app.users import queries as users_queries
from app.users import service as users
from app.users.models import Account, Role

log = logging.getLogger(__name__)

MAX_TOKENS = 50
# Where the setting gives no limit.
MAX_DAYS = 3650
REQUESTS = Bucket(per_second=60, burst=60)
USE_NOTED_EVERY = timedelta(minutes=10)
# From when on a token of administrators is a risk that nobody may remember.
OLD_DAYS, UNUSED_DAYS = 400, 180
LISTED_AFTER_EXPIRY = timedelta(days=30)


# --- the check at each request -------------------------------------------------------------------


def authenticate(rt: Runtime, text: str) -> Program:
    """Return the program whose token this is, checked against the current state of the database.

    Raises: TokenInvalid, TokenExpired, RateLimited, AccountDisabled, PendingActivation,
    PasswordChangeRequired.
    """
    if not rt.settings.get(keys.ACCESS_TOKENS_ENABLED) or not form.is_well_formed(text):
        raise TokenInvalid
    program = queries.find_program(rt.database, digest(text))
    if program is None:
        raise TokenInvalid
    if program.token.expires_at is not None and program.token.expires_at <= rt.clock.now():
        raise TokenExpired
    if rt.config.rate_limits:
        rt.limits.rates.take("access_token", REQUESTS, str(program.token.id))
    users.require_usable(rt, program.account)
    return program


def require_still_open(rt: Runtime, session: Session, program: Program) -> Account:
    """Return the account of a program as it is now; refuse one that may do nothing any more.

    Raises: TokenInvalid, AccountDisabled, PendingActivation, PasswordChangeRequired.
    """
    account = users_queries.find_account(session, program.user_id)
    if account is None or not queries.is_live(session, program.token.id, rt.clock.now()):
        raise TokenInvalid
    users.require_usable(rt, account)
    return account


def note_use(rt: Runtime, token: ProgramToken, address: str | None) -> None:
    """Note when and from where a token was used, unless that is known well enough.

    Failing to do so is only logged.
    """
    now = rt.clock.now()
    since, until = now - USE_NOTED_EVERY, now + SKEW
    if token.last_used_at is not None and since <= token.last_used_at <= until:
        return
    try:
        with rt.transaction() as session:
            is_due = queries.is_used_outside(since, until)
            queries.note_use(session, token.id, now, address, is_due)
    except DATABASE_ERRORS as error:
        log.warning("the use of a token could not be noted: %s", reason_of(error))


def filter_open(rt: Runtime, session: Session, token_ids: Collection[int]) -> set[int]:
    """Return which of these tokens may go on: the checks of `authenticate` for many at once."""
    if not rt.settings.get(keys.ACCESS_TOKENS_ENABLED):
        return set()
    enforces = users.enforces_password_change(rt)
    return queries.list_open_among(session, token_ids, rt.clock.now(), enforces_change=enforces)


# --- what owners and operators do ----------------------------------------------------------------


def list_of(rt: Runtime, session: Session, user_id: int) -> Sequence[AccessToken]:
    """Return the tokens of an account, newest first; expired ones for 30 days."""
    return queries.list_of(session, user_id, rt.clock.now() - LISTED_AFTER_EXPIRY)


def get(session: Session, user_id: int, token_id: int) -> AccessToken:
    """Return a token of an account.

    Raises: AccessTokenNotFound.
    """
    token = queries.find(session, token_id)
    if token is None or token.user_id != user_id:
        raise AccessTokenNotFound
    return token


def make(
    rt: Runtime,
    session: Session,
    by: Operator,
    account: Account,
    *,
    name: str,
    scopes: Collection[Scope],
    days: int | None,
) -> tuple[str, AccessToken]:
    """Make a token for a locked account; return its text, which is stored nowhere, and the rest.

    `days` is how long it is valid; None means for ever. Its owner is told by mail and, if it is for
    administration, so are the other administrators. Raises: errors.CREATE.
    """
    now, text = rt.clock.now(), form.new_token()
    _require_allowed_life(rt, days)
    if ADMIN_SCOPES & set(scopes) and account.role != Role.ADMIN:
        raise AdminRequired
    name = _free_name(session, account.id, name, now)
    ordered = [scope for scope in Scope if scope in scopes]
    token = queries.add(
        session,
        AccessToken(
            user_id=account.id,
            name=name,
            digest=digest(text),
            prefix=text[: form.SHOWN_LENGTH],
            stored_scopes=" ".join(ordered),
            created_at=now,
            expires_at=None if days is None else now + timedelta(days=days),
        ),
    )
    own, others = Action.USER_TOKEN_CREATE, Action.ADMIN_CREATE_USER_TOKEN
    _record(rt, session, by, account, token, own, others, scopes=ordered)
    _tell_of_new(rt, session, by, account, token)
    return text, token


def rename(
    rt: Runtime, session: Session, by: Operator, account: Account, token_id: int, name: str
) -> AccessToken:
    """Rename a token of a locked account, to its owner's request.

    Raises: errors.RENAME.
    """
    token = get(session, account.id, token_id)
    previous = token.name
    token.name = _free_name(session, account.id, name, rt.clock.now(), token_id)
    action = Action.USER_TOKEN_RENAME
    names = {"previous_name": previous, "next_name": token.name}
    _record(rt, session, by, account, token, action, action, **names)
    return token


def remove(
    rt: Runtime, session: Session, by: Operator, account: Account, tokens: Sequence[AccessToken]
) -> None:
    """Remove tokens of a locked account; an operator who is not the owner tells the owner."""
    queries.remove(session, [token.id for token in tokens])
    own, others = Action.USER_TOKEN_DELETE, Action.ADMIN_REMOVE_USER_TOKEN
    for token in tokens:
        _record(rt, session, by, account, token, own, others, scopes=list(token.scopes))
    if tokens:
        users.publish_ended_access(rt, session, account.id)
    if tokens and by.user_id != account.id:
        names = ", ".join(f"“{token.name}”" for token in tokens)
        what = "access token" if len(tokens) == 1 else "access tokens"
        users.notify_owner(rt, session, account, f"An administrator removed the {what} {names}.")


def delete_expired(rt: Runtime) -> int:
    """Delete tokens that expired more than 30 days ago; return how many."""
    before = rt.clock.now() - LISTED_AFTER_EXPIRY
    return bulk.delete_in_batches(rt, queries.delete_expired, before)


def list_risky(rt: Runtime, session: Session) -> Sequence[tuple[str, str]]:
    """Return the owner's and the token's name of live ones with all rights that seem forgotten."""
    now = rt.clock.now()
    return queries.list_forgotten(
        session,
        Scope.ADMIN,
        now,
        made_before=now - timedelta(days=OLD_DAYS),
        used_before=now - timedelta(days=UNUSED_DAYS),
    )


def longest_life(rt: Runtime) -> int | None:
    """Return for how many days a token may be valid at most; None means for ever."""
    return rt.settings.get(keys.ACCESS_TOKEN_MAX_DAYS) or None


def _require_allowed_life(rt: Runtime, days: int | None) -> None:
    most = longest_life(rt)
    if days is None and most is None:
        return
    if days is None or not 1 <= days <= (most or MAX_DAYS):
        never = "" if most else ", or null for a token that never expires"
        raise TokenLifeInvalid(f"expires_in_days must be from 1 to {most or MAX_DAYS}{never}.")


def _free_name(
    session: Session, user_id: int, typed: str, now: datetime, own_id: int | None = None
) -> str:
    """Return a name that no other live token of a locked account has.

    Raises: TokenNameInvalid, TokenNameTaken; TooManyTokens, if it is for a new token.
    """
    name = typed.strip()
    if not 1 <= len(name) <= MAX_NAME_LENGTH or has_controls(name):
        raise TokenNameInvalid
    names = queries.list_live_names(session, user_id, now)
    if own_id is None and len(names) >= MAX_TOKENS:
        raise TooManyTokens
    if folded(name) in (folded(other) for id, other in names.items() if id != own_id):
        raise TokenNameTaken
    return name


def _record(
    rt: Runtime,
    session: Session,
    by: Operator,
    account: Account,
    token: AccessToken,
    own: Action,
    others: Action,
    **details: object,
) -> None:
    """Record what happened to a token: `own` if its owner did it, else `others`."""
    is_own = by.user_id == account.id
    # Of whose token it is, and which, the owner learns from the details.
    about: Mapping[str, object] = {} if is_own else {"user_id": account.id, "name": token.name}
    audit.record_by(
        rt,
        session,
        by,
        own if is_own else others,
        EntityType.ACCESS_TOKEN,
        entity_id=token.id,
        entity_name=token.name,
        details={**about, **details},
    )


def _tell_of_new(
    rt: Runtime, session: Session, by: Operator, account: Account, token: AccessToken
) -> None:
    scopes = f"scopes: {', '.join(token.scopes)}"
    until = "it does not expire"
    if token.expires_at is not None:
        until = f"valid until {token.expires_at:%Y-%m-%d %H:%M} UTC"
    about = f"“{token.name}” ({scopes}; {until})"
    who = "" if by.user_id == account.id else " by an administrator"
    event = f"A new access token was made for your account{who}: {about}."
    users.notify_owner(rt, session, account, event)
    if ADMIN_SCOPES & set(token.scopes):
        event = f"An access token for administration was made for {account.username}: {about},"
        users.notify_administrators(rt, session, by, event, but=account)
