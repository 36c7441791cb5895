"""Schemas of accounts in requests and answers."""

import hashlib
from typing import Any

from marshmallow import fields, post_dump

from app.core.email_address import MAX_EMAIL_LENGTH
from app.crypto.passwords import MAX_PASSWORD_LENGTH, MAX_TYPED_PASSWORD_LENGTH, MIN_PASSWORD_LENGTH
from app.settings import keys
from app.users.models import Account, AvatarSource, Role, Status
from app.web.runtime import runtime
from app.web.schema import MAX_INPUT_LENGTH, Answer, Part, RequestSchema, Timestamp, Word, text

USERNAME_RULE: dict[str, Any] = {
    "description": "2 to 64 characters: A to Z, a to z, 0 to 9, dot, hyphen and underscore",
    "minLength": 2,
    "maxLength": 64,
    "pattern": "^[A-Za-z0-9_.-]*$",
}
# Letters and digits of any script: all but the rest of ASCII; inside a label there may be a hyphen.
_SIGNS = r"\u002e\u002f\u003a-\u0040\u005b-\u0060\u007b-\u007f"
_LETTER, _INNER = rf"[^\u0000-\u002d{_SIGNS}]", rf"[^\u0000-\u002c{_SIGNS}]"
_LABEL = f"{_LETTER}({_INNER}*{_LETTER})?"
EMAIL_RULE: dict[str, Any] = {
    "description": (
        "1 to 64 of A to Z, a to z, 0 to 9, dot and !#$%&'*+/=?^_`{|}~- in any order, then @ and a "
        "host name with a dot, in ASCII or as IDNA 2008 allows"
    ),
    "maxLength": MAX_EMAIL_LENGTH,
    "pattern": rf"^[A-Za-z0-9.!#$%&'*+/=?^_`{{|}}~-]{{1,64}}@{_LABEL}(\.{_LABEL})+$",
}
PASSWORD_RULE: dict[str, Any] = {
    "minLength": MIN_PASSWORD_LENGTH,
    "maxLength": MAX_PASSWORD_LENGTH,
}
AVATAR_URL = "relative to /api/v1 if it begins with a slash, else absolute"


class NewAccountSchema(RequestSchema):
    """POST /auth/setup and /auth/register."""

    username = text(MAX_INPUT_LENGTH, **USERNAME_RULE)
    email = text(MAX_INPUT_LENGTH, **EMAIL_RULE)
    password = text(MAX_TYPED_PASSWORD_LENGTH, **PASSWORD_RULE)


class AvatarUrl(fields.String):
    """A URL relative to the API's base for an upload, absolute for a Gravatar, else null."""

    def __init__(self, size: int, owner: str) -> None:
        about = {"description": AVATAR_URL, "examples": [f"/auth/profile/avatar/{size}?v=1"]}
        super().__init__(allow_none=True, metadata=about)
        self.size, self.owner = size, owner

    def get_value(self, obj: Account, *_: Any, **__: Any) -> Any:
        """Return the URL of an account's avatar."""
        if obj.avatar_source == AvatarSource.UPLOADED and (obj.avatar_key or "").strip():
            owner = self.owner.format(id=obj.id)
            return f"{owner}/avatar/{self.size}?v={obj.avatar_version}"
        if obj.avatar_source == AvatarSource.GRAVATAR:
            # The hash that Gravatar's URLs require; nothing depends on its security.
            name = hashlib.md5(obj.email.encode(), usedforsecurity=False).hexdigest()
            base_url = runtime().settings.get(keys.GRAVATAR_BASE_URL).strip().rstrip("/")
            base_url = base_url or keys.GRAVATAR_BASE_URL.default
            return f"{base_url}/{name}?d=identicon&s={self.size}&r=g"
        return None


class AvatarInfo(Answer):
    """Where the avatar comes from; the addresses are null without one."""

    source = Word(AvatarSource, attribute="avatar_source")
    url_512 = AvatarUrl(512, "/auth/profile")
    url_1024 = AvatarUrl(1024, "/auth/profile")
    version = fields.Integer(attribute="avatar_version")

    @post_dump
    def _without_profile(self, shown: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Show an account that never had a profile as one without an avatar."""
        return {
            **shown,
            "source": shown["source"] or AvatarSource.NONE,
            "version": shown["version"] or 0,
        }


class ProfileInfo(Answer):
    """Display name and avatar."""

    display_name = fields.String(allow_none=True)
    avatar = Part(AvatarInfo)


class AccountBase(Answer):
    """The fields every form of an account carries."""

    id = fields.Integer()
    username = fields.String()
    email = fields.String()
    email_verified = fields.Boolean()
    pending_email = fields.String(allow_none=True)
    role = Word(Role)
    status = Word(Status)
    must_change_password = fields.Boolean()
    policy_group_id = fields.Integer(allow_none=True)
    created_at = Timestamp()
    updated_at = Timestamp()


class UserInfo(AccountBase):
    """The whole account; sizes are in bytes, and a quota of 0 means no limit."""

    storage_used = fields.Integer()
    storage_quota = fields.Integer()
    profile = Part(ProfileInfo)


class ManagedAvatar(AvatarInfo):
    """An avatar under the addresses that administrators use."""

    url_512 = AvatarUrl(512, "/admin/users/{id}")
    url_1024 = AvatarUrl(1024, "/admin/users/{id}")


class ManagedProfile(ProfileInfo):
    """A profile as administrators see it."""

    avatar = Part(ManagedAvatar)


class UserSummary(Answer):
    """Who an account is, for people other than its owner."""

    id = fields.Integer()
    username = fields.String()
    profile = Part(ManagedProfile)


class ManagedUser(UserInfo):
    """An account as administrators see it; one that is not activated cannot sign in yet."""

    is_activated = fields.Boolean()
    profile = Part(ManagedProfile)
