"""JSON representations of an account and its profile (spec 01 §5)."""

import hashlib
from typing import Any

from app.core.runtime import Runtime
from app.settings import keys
from app.users.models import Account, AvatarSource
from app.web.schema import timestamp

AVATAR_SIZES = (512, 1024)


def base(account: Account) -> dict[str, Any]:
    """Return the fields that every representation of an account has."""
    return {
        "id": account.id,
        "username": account.username,
        "email": account.email,
        "email_verified": account.email_verified_at is not None,
        "pending_email": account.pending_email,
        "role": account.role,
        "status": account.status,
        "must_change_password": account.must_change_password,
        "policy_group_id": account.policy_group_id,
        "created_at": timestamp(account.created_at),
        "updated_at": timestamp(account.updated_at),
    }


def quota(account: Account) -> dict[str, Any]:
    """Return the storage fields, in bytes; a quota of 0 means unlimited."""
    return {"storage_used": account.storage_used, "storage_quota": account.storage_quota}


def profile(rt: Runtime, account: Account, *, is_own: bool = True) -> dict[str, Any]:
    """Return display name and avatar, with the owner's URLs or else an administrator's."""
    source = account.avatar_source or AvatarSource.NONE
    version = account.avatar_version or 0
    owner = "/auth/profile" if is_own else f"/admin/users/{account.id}"
    urls = {f"url_{size}": _avatar_url(rt, account, owner, size) for size in AVATAR_SIZES}
    return {
        "display_name": account.display_name,
        "avatar": {"source": source, **urls, "version": version},
    }


def user_info(rt: Runtime, account: Account, *, is_own: bool = True) -> dict[str, Any]:
    """Return the whole account object, for its owner or for an administrator."""
    shown = profile(rt, account, is_own=is_own)
    return {**base(account), **quota(account), "profile": shown}


def _avatar_url(rt: Runtime, account: Account, owner: str, size: int) -> str | None:
    """Return a URL relative to the API's base for an upload, absolute for a Gravatar, else None."""
    if account.avatar_source == AvatarSource.UPLOADED and (account.avatar_key or "").strip():
        return f"{owner}/avatar/{size}?v={account.avatar_version}"
    if account.avatar_source == AvatarSource.GRAVATAR:
        # The hash that Gravatar's URLs require; nothing depends on its security.
        name = hashlib.md5(account.email.encode(), usedforsecurity=False).hexdigest()
        base_url = rt.settings.get(keys.GRAVATAR_BASE_URL).strip().rstrip("/")
        return f"{base_url or keys.GRAVATAR_BASE_URL.default}/{name}?d=identicon&s={size}&r=g"
    return None
