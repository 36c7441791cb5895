"""The wire forms of an invitation: the invitee's and the administrator's (spec 01 §4, §8)."""

from typing import Any

from app.invitations.queries import StoredInvitation
from app.web.schema import timestamp


def invitation(found: StoredInvitation) -> dict[str, Any]:
    """Return the fields an invitee may see."""
    return {"email": found.email, "expires_at": timestamp(found.expires_at)}


def admin_invitation(found: StoredInvitation, *, mail_queued: bool = False) -> dict[str, Any]:
    """Return the whole invitation, but not its token, which only its creation can show."""
    return {
        "id": found.id,
        "email": found.email,
        "status": found.status.value,
        "invited_by": found.invited_by,
        "accepted_user_id": found.accepted_user_id,
        "expires_at": timestamp(found.expires_at),
        "created_at": timestamp(found.created_at),
        "updated_at": timestamp(found.updated_at),
        "accepted_at": timestamp(found.accepted_at),
        "revoked_at": timestamp(found.revoked_at),
        "mail_queued": mail_queued,
    }
