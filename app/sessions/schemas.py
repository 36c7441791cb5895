"""Payloads of the session endpoints."""

from marshmallow import fields

from app.web.schema import Answer, Timestamp


class RefreshedData(Answer):
    """How long the new access token lives, in seconds."""

    expires_in = fields.Integer(attribute="access_seconds")


class SessionItem(Answer):
    """One live session."""

    id = fields.UUID()
    is_current = fields.Boolean()
    ip_address = fields.String(allow_none=True)
    user_agent = fields.String(allow_none=True)
    created_at = Timestamp()
    last_seen_at = Timestamp()
    expires_at = Timestamp()


class RevokedSessionsData(Answer):
    """How many sessions ended."""

    removed = fields.Integer()
