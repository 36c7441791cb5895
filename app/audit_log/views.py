"""/admin/audit-logs."""

from typing import Any

from flask import Blueprint, Response, request

from app.audit.queries import EntryFilter
from app.audit_log import errors
from app.audit_log import export as audit_export
from app.audit_log import service as audit_log
from app.audit_log.export import ExportFormat
from app.audit_log.schemas import AuditActionItem, AuditExportQuery, AuditItem, AuditQuery
from app.core.access import Operator, Scope
from app.store.paging import Page, Paging
from app.web.guards import admin_may_read, admin_required
from app.web.operation import answers
from app.web.paging import page_of
from app.web.request import query_args
from app.web.runtime import runtime

bp = Blueprint("admin_audit", __name__, url_prefix="/api/v1/admin/audit-logs")

EXPORTED = ("text/csv", "application/x-ndjson")


@bp.get("")
@admin_may_read()
@query_args(AuditQuery)
@answers(page_of(AuditItem), name="adminListAuditEntries")
def list_entries(page: Paging, **chosen: Any) -> Page:
    """List what was done, and by whom."""
    return audit_log.read_page(runtime(), page, EntryFilter(**chosen))


@bp.get("/export")
@admin_required(opened_by=Scope.ADMIN_READ, confirmation="if_set")
@query_args(AuditExportQuery)
@answers(
    media_type=EXPORTED,
    errors=errors.EXPORT_AUDIT_LOG,
    name="adminExportAuditLog",
)
def export(by: Operator, page: Paging, kind: ExportFormat, **chosen: Any) -> Response:
    """Return the matching entries as a file, at most 100,000.

    Without the members of `details` whose name speaks of a secret. In CSV, a cell that a
    spreadsheet would take for a formula begins with an apostrophe. The export is recorded.
    """
    return attachment(by, page, EntryFilter(**chosen), kind)


@bp.get("/actions")
@admin_may_read()
@answers(AuditActionItem(many=True), name="adminListAuditActions")
def list_actions() -> list[dict[str, Any]]:
    """List every action, whether it is recorded, and how often it was in 30 days."""
    return audit_log.list_actions(runtime())


def attachment(by: Operator, paging: Paging, chosen: EntryFilter, kind: ExportFormat) -> Response:
    """Return the answer that is an export."""
    is_asked_only = request.method == "HEAD"
    pieces = () if is_asked_only else audit_export.export(runtime(), by, paging, chosen, kind)
    name = audit_export.file_name(runtime(), kind)
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(pieces, content_type=audit_export.MEDIA_TYPES[kind], headers=headers)
