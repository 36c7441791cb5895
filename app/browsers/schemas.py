"""Payloads of remembered browsers."""

from marshmallow import fields

from app.web.schema import Answer, Timestamp, example_metadata


class RememberedBrowserItem(Answer):
    """A browser that is not asked for the second step.

    `name` is in English: a browser, " on " and a platform, or one of both, or "Unknown browser".
    """

    id = fields.Integer()
    name = fields.String(metadata=example_metadata("Firefox on Windows"))
    is_current = fields.Boolean()
    ip_address = fields.String(allow_none=True)
    created_at = Timestamp(attribute="remembered_at")
    last_used_at = Timestamp(attribute="last_seen_at")
    expires_at = Timestamp(attribute="remembered_until")


class ExportedBrowser(Answer):
    """A browser that has signed in to the account."""

    name = fields.String()
    ip_address = fields.String(allow_none=True)
    first_seen_at = Timestamp()
    last_seen_at = Timestamp()
    remembered_until = Timestamp(allow_none=True)


class ForgottenBrowsersData(Answer):
    """How many browsers are asked for the second step again."""

    removed = fields.Integer()
