"""Payloads of the session endpoints."""

from marshmallow import Schema, fields

from app.web.schema import Timestamp


class RefreshedData(Schema):
    """How long the new access token lives, in seconds."""

    expires_in = fields.Integer(required=True, attribute="access_seconds")


class SessionItem(Schema):
    """One live session."""

    id = fields.UUID(required=True)
    is_current = fields.Boolean(required=True)
    ip_address = fields.String(required=True, allow_none=True)
    user_agent = fields.String(required=True, allow_none=True)
    created_at = Timestamp(required=True)
    last_seen_at = Timestamp(required=True)
    expires_at = Timestamp(required=True)


class RevokedSessionsData(Schema):
    """How many sessions ended."""

    removed = fields.Integer(required=True)
