"""Queries and answers about the installation as a whole."""

from typing import Any

from marshmallow import Schema, fields, validate

from app.audit_log.schemas import AuditItem
from app.core import product
from app.installation import cleanup, health
from app.installation.machine_checks import Level
from app.setup.queries import SetupState
from app.web.paging import Clamped
from app.web.schema import Answer, RequestSchema, SentenceData, Timestamp, Word, always


class OverviewQuery(RequestSchema):
    """GET /admin/overview."""

    days = Clamped(7, 1, 90)
    timezone = fields.String(
        load_default="UTC", metadata={"description": "IANA name; days begin at its midnight"}
    )
    event_limit = Clamped(8, 1, 50)


def _counts(name: str, *counted: str) -> Schema:
    members: dict[str, Any] = {one: fields.Integer() for one in counted}
    counts = Answer.from_dict(members, name=name)
    counts.__doc__ = "Numbers of the whole installation."
    return counts()


class HealthComponentData(Answer):
    """One part that the service depends on."""

    name = fields.String()
    status = fields.String(validate=validate.OneOf(health.STATUSES))
    message = fields.String()
    sentences = fields.List(fields.Nested(SentenceData), dump_default=list)


class SystemHealthData(Answer):
    """What the last round of housekeeping found."""

    status = fields.String(validate=validate.OneOf(("unknown", *health.STATUSES)))
    summary = fields.String()
    details = always(product.HEALTH["details"], "string")
    components = fields.List(fields.Nested(HealthComponentData))
    checked_at = fields.String(allow_none=True, metadata={"format": "date-time"})
    task_id = always(product.HEALTH["task_id"], "integer")


class DailyReportData(Answer):
    """What happened on one day; sign-ins that were completed."""

    date = fields.Date(metadata={"examples": ["2026-03-02"]})
    sign_ins = fields.Integer()
    failed_sign_ins = fields.Integer()
    new_users = fields.Integer()
    deletions = fields.Integer()
    password_resets = fields.Integer()
    uploads = fields.Integer()
    share_creations = fields.Integer()
    total_events = fields.Integer()


class OverviewData(Answer):
    """What administrators see first; numbers of files are 0, those are another service's."""

    generated_at = Timestamp()
    timezone = fields.String(metadata={"examples": ["UTC"]})
    days = fields.Integer()
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
            *product.FILE_STATS,
        ),
    )
    estimated_stats = fields.List(
        fields.String(), metadata={"description": "the names of the numbers that are estimates"}
    )
    system_health = fields.Nested(SystemHealthData)
    daily_reports = fields.List(fields.Nested(DailyReportData))
    recent_events = fields.List(fields.Nested(AuditItem))
    recent_background_tasks = fields.List(fields.Raw())
    is_audit_log_enabled = fields.Boolean()


class SystemInfoData(Answer):
    """Which version runs."""

    version = fields.String()
    build_time = Timestamp(metadata={"description": "when this copy of the code was written"})


class CheckData(Answer):
    """What one check found; `sentences` are the message, one by one."""

    check = fields.String()
    level = fields.String(validate=validate.OneOf([*Level]))
    message = fields.String()
    sentences = fields.List(fields.Nested(SentenceData))


class DoctorData(Answer):
    """What every check found, and the worst of it."""

    checked_at = Timestamp()
    worst = fields.String(validate=validate.OneOf([*Level]))
    setup_state = fields.String(allow_none=True, validate=validate.OneOf([*SetupState, None]))
    checks = fields.List(fields.Nested(CheckData))


CleanupData = Answer.from_dict(
    {name: fields.Integer() for name in cleanup.CLEANUPS}, name="CleanupData"
)
CleanupData.__doc__ = "How much was deleted of each kind of thing that expires."


class StorageRouteData(Answer):
    """The default policy and group, and how far the set-up is."""

    policy_id = fields.Integer()
    group_id = fields.Integer()
    setup_state = Word(SetupState)


class SecretKeyData(Answer):
    """What may be told of a key."""

    id = fields.String(metadata={"examples": ["5f0c3a9be2d1"]})
    created_at = Timestamp(allow_none=True)
    retired_at = Timestamp(allow_none=True)
    is_signing = fields.Boolean()


class KeysData(Answer):
    """The secret keys, and how many stored secrets none of them opens."""

    source = fields.String(validate=validate.OneOf(("file", "environment")))
    unreadable_secrets = fields.Integer()
    keys = fields.List(fields.Nested(SecretKeyData))


class RotatedKeysData(Answer):
    """The new key, and how many stored secrets were encrypted anew or can no longer be read."""

    key = fields.Nested(SecretKeyData)
    resealed = fields.Integer()
    unreadable = fields.Integer()
