"""Queries and answers about the installation as a whole."""

from typing import Any

from marshmallow import Schema, fields, validate

from app.audit_log.schemas import AuditItem
from app.installation import cleanup, health
from app.installation.machine_checks import Level
from app.setup.queries import SetupState
from app.web.paging import Clamped
from app.web.schema import RequestSchema, Timestamp, Word


class OverviewQuery(RequestSchema):
    """GET /admin/overview."""

    days = Clamped(7, 1, 90)
    timezone = fields.String(
        load_default="UTC", metadata={"description": "IANA name; days begin at its midnight"}
    )
    event_limit = Clamped(8, 1, 50)


def _counts(name: str, *counted: str) -> Schema:
    members: dict[str, Any] = {one: fields.Integer(required=True) for one in counted}
    return Schema.from_dict(members, name=name)()


class HealthComponentData(Schema):
    """One part that the service depends on."""

    name = fields.String(required=True)
    status = fields.String(required=True, validate=validate.OneOf(health.STATUSES))
    message = fields.String(required=True)


class SystemHealthData(Schema):
    """What the last round of housekeeping found."""

    status = fields.String(required=True, validate=validate.OneOf(("unknown", *health.STATUSES)))
    summary = fields.String(required=True)
    details = fields.Constant(None, metadata={"type": "string"})
    components = fields.List(fields.Nested(HealthComponentData), required=True)
    checked_at = fields.String(required=True, allow_none=True, metadata={"format": "date-time"})
    task_id = fields.Constant(None, metadata={"type": "integer"})


class DailyReportData(Schema):
    """What happened on one day; sign-ins that were completed."""

    date = fields.Date(required=True, metadata={"examples": ["2026-03-02"]})
    sign_ins = fields.Integer(required=True)
    failed_sign_ins = fields.Integer(required=True)
    new_users = fields.Integer(required=True)
    deletions = fields.Integer(required=True)
    password_resets = fields.Integer(required=True)
    uploads = fields.Integer(required=True)
    share_creations = fields.Integer(required=True)
    total_events = fields.Integer(required=True)


class OverviewData(Schema):
    """What administrators see first; numbers of files are 0, those are another service's."""

    generated_at = Timestamp(required=True)
    timezone = fields.String(required=True, metadata={"examples": ["UTC"]})
    days = fields.Integer(required=True)
    stats = fields.Nested(
        _counts(
            "OverviewStats",
            "total_users",
            "active_users",
            "disabled_users",
            "pending_users",
            "administrators",
            "new_users_today",
            "live_sessions",
            "users_with_second_factor",
            "users_with_passkey",
            "pending_invitations",
            "mails_waiting",
            "mails_failed_24h",
            "audit_events_today",
            "total_files",
            "total_file_bytes",
            "total_blobs",
            "total_blob_bytes",
            "total_shares",
            "uploads_today",
            "shares_today",
        ),
        required=True,
    )
    system_health = fields.Nested(SystemHealthData, required=True)
    daily_reports = fields.List(fields.Nested(DailyReportData), required=True)
    recent_events = fields.List(fields.Nested(AuditItem), required=True)
    recent_background_tasks = fields.List(fields.Raw(), required=True)
    is_audit_log_enabled = fields.Boolean(required=True)


class SystemInfoData(Schema):
    """Which version runs."""

    version = fields.String(required=True)
    build_time = Timestamp(
        required=True, metadata={"description": "when this copy of the code was written"}
    )


class CheckData(Schema):
    """What one check found."""

    check = fields.String(required=True)
    level = fields.String(required=True, validate=validate.OneOf([*Level]))
    message = fields.String(required=True)


class DoctorData(Schema):
    """What every check found, and the worst of it."""

    checked_at = Timestamp(required=True)
    worst = fields.String(required=True, validate=validate.OneOf([*Level]))
    setup_state = fields.String(
        required=True, allow_none=True, validate=validate.OneOf([*SetupState, None])
    )
    checks = fields.List(fields.Nested(CheckData), required=True)


CleanupData = Schema.from_dict(
    {name: fields.Integer(required=True) for name in cleanup.CLEANUPS}, name="CleanupData"
)


class StorageRouteData(Schema):
    """The default policy and group, and how far the set-up is."""

    policy_id = fields.Integer(required=True)
    group_id = fields.Integer(required=True)
    setup_state = Word(SetupState)


class SecretKeyData(Schema):
    """What may be told of a key."""

    id = fields.String(required=True, metadata={"examples": ["5f0c3a9be2d1"]})
    created_at = Timestamp(required=True, allow_none=True)
    retired_at = Timestamp(required=True, allow_none=True)
    is_signing = fields.Boolean(required=True)


class KeysData(Schema):
    """The secret keys, and how many stored secrets none of them opens."""

    source = fields.String(required=True, validate=validate.OneOf(("file", "environment")))
    unreadable_secrets = fields.Integer(required=True)
    keys = fields.List(fields.Nested(SecretKeyData), required=True)


class RotatedKeysData(Schema):
    """The new key, and how many stored secrets were encrypted anew or can no longer be read."""

    key = fields.Nested(SecretKeyData, required=True)
    resealed = fields.Integer(required=True)
    unreadable = fields.Integer(required=True)
