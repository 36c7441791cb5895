"""Use cases of invitations.

Invariants: an invitation leaves PENDING once and for good. An address is locked before its
invitations, so that transactions cannot deadlock.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, and_, func, or_, select
from sqlalchemy.orm import Session

from app.audit import service as audit
from app.audit.models import Action, EntityType
from app.core.access import Operator
from app.core.client import Client
from app.core.errors import AppError, RateLimited
from app.core.runtime import Runtime
from app.core.texts import folded, shortened, typed_id
from app.crypto.tokens import digest, random_token
from app.invitations.errors import (
    InvitationAccepted,
    InvitationExpired,
    InvitationInvalid,
    InvitationNotFound,
    InvitationRevoked,
)
from app.invitations.models import Invitation, InvitationStatus
from app.login import sign_in_methods
from app.mail import service as mail
from app.mail.templates import Template
from app.settings import keys
from app.setup import service as setup
from app.store.paging import Page, Paging, read_items, rows_of
from app.users import identifiers
from app.users import queries as users_queries
from app.users import service as users
from app.users.errors import EmailExists
from app.users.models import Account, User
from app.web import site

# The frontend's page; the token follows as the rest of the path.
PAGE = "/invite/"
RESEND_AFTER = timedelta(seconds=60)

CLOSED_ERRORS: dict[InvitationStatus, type[AppError]] = {
    InvitationStatus.ACCEPTED: InvitationAccepted,
    InvitationStatus.EXPIRED: InvitationExpired,
    InvitationStatus.REVOKED: InvitationRevoked,
}


@dataclass(frozen=True)
class ListedInvitation:
    """An invitation with the username of whoever sent it, None as `invited_by` is."""

    invitation: Invitation
    invited_by_username: str | None


@dataclass(frozen=True)
class CreatedInvitation:
    """A new invitation with its link and its token, of which only the digest is stored."""

    invitation: Invitation
    token: str = field(repr=False)
    url: str = field(repr=False)


def look_up(rt: Runtime, token: str) -> Invitation:
    """Return the open invitation that a token belongs to.

    Raises: errors.CLOSED.
    """
    now = rt.clock.now()
    with rt.reading() as session:
        its_token = Invitation.token_digest == digest(token.strip())
        found = session.scalar(select(Invitation).where(its_token))
    if found is None:
        raise InvitationInvalid
    status = found.status_at(now)
    if status != found.status:
        with rt.transaction() as session:
            _refusal(_lock(session, found.id), now)
    if status in CLOSED_ERRORS:
        raise CLOSED_ERRORS[status]
    return found


def accept(rt: Runtime, token: str, *, username: str, password: str, client: Client) -> Account:
    """Create an activated, verified account for the invited address.

    An error leaves the invitation open; of concurrent calls for one token exactly one succeeds.
    Raises the first that applies, in this order: PasswordLoginDisabled, what `look_up` raises,
    EmailBlocked, EmailNotAllowlisted, EmailExists, PasswordInvalid, SystemNotInitialized,
    UsernameInvalid, UsernameReserved, UsernameExists, IdentifierExists.
    """
    sign_in_methods.require_password_login(rt)
    invitation = look_up(rt, token)
    users.require_allowed_address(rt, invitation.email)
    _require_free_address(rt, token, invitation)
    users.require_acceptable(rt, password, username, invitation.email)
    setup.require_ready_now(rt)
    users.require_unreserved(rt, identifiers.username(username))
    password_hash = rt.passwords.hash(password)
    quota = rt.settings.get(keys.DEFAULT_STORAGE_QUOTA)
    now = rt.clock.now()
    with rt.transaction() as session:
        users.lock_address(session, invitation.email)
        locked = _lock(session, invitation.id)
        refusal = _refusal(locked, now)
        if refusal is None:
            new = User(
                username=username,
                email=invitation.email,
                password_hash=password_hash,
                activated_at=now,
                email_verified_at=now,
                proven_at=now,
                storage_quota=quota,
                policy_group_id=setup.get_group_id_for_new_account(session),
            )
            account = users.create(session, new, rt.clock.now())
            locked.close(InvitationStatus.ACCEPTED, now)
            locked.accepted_at, locked.accepted_user_id = now, account.id
            users.record(rt, session, Action.USER_REGISTER, account, client)
            return account
    raise refusal


def create(
    rt: Runtime, by: Operator, *, email: str, ttl_seconds: int | None = None
) -> CreatedInvitation:
    """Invite an address by mail and revoke its earlier invitations.

    With `ttl_seconds` None the configured lifetime applies. Raises: errors.CREATE.
    """
    address = identifiers.email(email)
    users.require_allowed_address(rt, address)
    seconds = ttl_seconds or rt.settings.get(keys.INVITATION_TTL_SECONDS)
    with rt.transaction() as session:
        users.reserve_address(session, address)
        return _invite(rt, session, by, address, seconds, Action.ADMIN_CREATE_INVITATION)


def resend(rt: Runtime, by: Operator, typed: str | int) -> CreatedInvitation:
    """Invite the address of an invitation anew, which revokes that one.

    Raises: errors.RESEND; RateLimited within a minute of the last mail to the address.
    """
    invitation_id = _id(typed)
    with rt.reading() as session:
        found = session.get(Invitation, invitation_id)
    if found is None:
        raise InvitationNotFound(f"There is no invitation {invitation_id}.")
    if found.status == InvitationStatus.ACCEPTED:
        raise InvitationAccepted
    users.require_allowed_address(rt, found.email)
    seconds = rt.settings.get(keys.INVITATION_TTL_SECONDS)
    with rt.transaction() as session:
        users.lock_address(session, found.email)
        if _lock(session, found.id).status == InvitationStatus.ACCEPTED:
            raise InvitationAccepted
        users.require_free_address(session, found.email)
        last = session.scalar(
            select(func.max(Invitation.created_at)).where(Invitation.email == found.email)
        )
        if last and not rt.clock.is_ahead(last):
            left = last + RESEND_AFTER - rt.clock.now()
            if left > timedelta(0):
                raise RateLimited(retry_after=math.ceil(left.total_seconds()))
        return _invite(rt, session, by, found.email, seconds, Action.ADMIN_RESEND_INVITATION)


def _invite(
    rt: Runtime, session: Session, by: Operator, address: str, seconds: int, action: Action
) -> CreatedInvitation:
    """Replace the invitations of an address, which is locked, by a new one that is mailed."""
    token, now = random_token(), rt.clock.now()
    url = site.link(rt, f"{PAGE}{token}")
    _close_pending(session, address, now)
    expires_at = now + timedelta(seconds=seconds)
    invitation = Invitation(
        email=address,
        token_digest=digest(token),
        status=InvitationStatus.PENDING,
        invited_by=by.user_id,
        expires_at=expires_at,
        created_at=now,
        updated_at=now,
    )
    session.add(invitation)
    session.flush()
    mail.queue(
        rt,
        session,
        Template.USER_INVITATION,
        address,
        expires_at=expires_at,
        email=address,
        invitation_url=url,
        lifetime=seconds,
    )
    _record(rt, session, by, action, invitation)
    return CreatedInvitation(invitation, token, url)


def revoke(rt: Runtime, by: Operator, typed: str | int) -> Invitation:
    """Revoke an open invitation.

    Raises: errors.REVOKE.
    """
    invitation_id, now = _id(typed), rt.clock.now()
    with rt.transaction() as session:
        invitation = _lock(session, invitation_id)
        refusal = _refusal(invitation, now)
        if refusal is None:
            invitation.close(InvitationStatus.REVOKED, now)
            invitation.revoked_at = now
            _record(rt, session, by, Action.ADMIN_REVOKE_INVITATION, invitation)
            return invitation
    raise refusal


def list_invitations(rt: Runtime) -> Sequence[Invitation]:
    """Return every invitation, newest first; overdue ones are shown as expired."""
    newest_first = Invitation.created_at.desc(), Invitation.id.desc()
    with rt.reading() as session:
        found = session.scalars(select(Invitation).order_by(*newest_first)).all()
    for invitation in found:  # no longer of a session, so that this is not stored
        invitation.status = invitation.status_at(rt.clock.now())
    return found


def read_page(
    rt: Runtime, paging: Paging, *, status: InvitationStatus | None, keyword: str | None
) -> Page:
    """Return a page of invitations; overdue ones count and are shown as expired.

    `keyword` is a part of the address, or an id; None for either filter matches all.
    """
    now = rt.clock.now()
    conditions = []
    if status is not None:
        conditions.append(_shown_as(status, now))
    if keyword is not None:
        is_part = Invitation.email.contains(folded(keyword), autoescape=True)
        conditions.append(or_(is_part, Invitation.id == typed_id(keyword)))
    with rt.reading() as session:
        matching, columns = select(Invitation.id).where(*conditions), {"id": Invitation.id}
        page = read_items(session, matching, columns, paging, rows_of(session, Invitation))
        inviters = {invitation.invited_by for invitation in page.items}
        named = select(User.id, User.username).where(User.id.in_(inviters))
        names = dict(iter(session.execute(named)))
    for invitation in page.items:  # no longer of a session, so that this is not stored
        invitation.status = invitation.status_at(now)
    return replace(
        page, items=[ListedInvitation(one, names.get(one.invited_by)) for one in page.items]
    )


def _shown_as(status: InvitationStatus, now: datetime) -> ColumnElement[bool]:
    has_status = Invitation.status == status
    is_overdue = and_(Invitation.status == InvitationStatus.PENDING, Invitation.expires_at <= now)
    if status is InvitationStatus.PENDING:
        return and_(has_status, Invitation.expires_at > now)
    return or_(has_status, is_overdue) if status is InvitationStatus.EXPIRED else has_status


def _id(typed: str | int) -> int:
    """Return the id of an invitation that an operator typed."""
    invitation_id = typed if isinstance(typed, int) else typed_id(typed)
    if invitation_id is None:
        raise InvitationNotFound(f"There is no invitation {shortened(str(typed))}.")
    return invitation_id


def _require_free_address(rt: Runtime, token: str, invitation: Invitation) -> None:
    """Refuse an address that an account has taken since it was invited.

    Raises: EmailExists; InvitationAccepted if it was this invitation that was just accepted.
    """
    with rt.reading() as session:
        is_taken = users_queries.is_email_taken(session, invitation.email)
    if is_taken:
        look_up(rt, token)
        raise EmailExists


def _lock(session: Session, invitation_id: int) -> Invitation:
    """Lock an invitation, so that of concurrent calls to accept or revoke it only one does."""
    found = session.get(Invitation, invitation_id, with_for_update=True)
    if found is None:
        raise InvitationNotFound(f"There is no invitation {invitation_id}.")
    return found


def _refusal(locked: Invitation, now: datetime) -> type[AppError] | None:
    """Return the error for an invitation that is not open; mark it expired if it is overdue."""
    status = locked.status_at(now)
    if status != locked.status:
        locked.close(status, now)
    return CLOSED_ERRORS.get(status)


def _close_pending(session: Session, email: str, now: datetime) -> None:
    """Close an address's pending invitation: expire it if overdue, else revoke it."""
    pending = Invitation.email == email, Invitation.status == InvitationStatus.PENDING
    for invitation in session.scalars(select(Invitation).where(*pending).with_for_update()):
        if _refusal(invitation, now) is None:
            invitation.close(InvitationStatus.REVOKED, now)
            invitation.revoked_at = now
    session.flush()  # before the new one: an address has one that is pending


def _record(
    rt: Runtime, session: Session, by: Operator, action: Action, invitation: Invitation
) -> None:
    about = {"entity_id": invitation.id, "entity_name": invitation.email}
    audit.record_by(rt, session, by, action, EntityType.INVITATION, **about)
