"""Errors of reading the audit log."""

from app.core.errors import ErrorCode, InsufficientStorage


class ExportTooLong(InsufficientStorage):
    """More entries match than an export may have."""

    code = ErrorCode.OPERATION_RESOURCE_LIMIT_EXCEEDED
    message = "More than 100000 entries match; narrow the filter."


EXPORT_AUDIT_LOG = (ExportTooLong,)
