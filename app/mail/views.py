"""/admin/mail, and what /admin/config has about mails."""

from typing import Any
from urllib.parse import urlencode

from flask import Blueprint, Response
from marshmallow import fields

from app.core import email_address
from app.core.access import Operator, Scope
from app.core.runtime import Runtime
from app.core.texts import is_storable
from app.mail import errors, operators, previews
from app.mail.models import MailStatus
from app.mail.operators import Flushed
from app.mail.previews import Draft
from app.mail.schemas import (
    DraftQuery,
    FlushedData,
    MailActionSchema,
    MailTemplateData,
    OutboxMailData,
    OutboxQuery,
    PreviewData,
    PreviewSchema,
    TemplateVariablesData,
    variables_of,
)
from app.mail.templates import DESCRIPTIONS, Template
from app.settings import mail_keys
from app.settings.catalogue import SEND_TEST_MAIL
from app.store.paging import Page, Paging
from app.web.guards import admin_may_read, admin_required
from app.web.operation import answers
from app.web.paging import page_of
from app.web.request import json_body, query_args
from app.web.runtime import runtime
from app.web.schema import MessageData

PREFIX = "/api/v1/admin"
bp = Blueprint("mail", __name__, url_prefix=PREFIX)

# A draft is foreign markup: nothing in it runs, and it loads nothing.
SHUT_IN = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:"
TEST_MAIL_ERRORS = (
    errors.ActionUnknown,
    errors.RecipientInvalid,
    errors.MailNotConfigured,
    errors.MailDeliveryFailed,
)


@bp.get("/mail/outbox")
@admin_may_read()
@query_args(OutboxQuery)
@answers(page_of(OutboxMailData), name="adminListMails")
def outbox(
    page: Paging, status: MailStatus | None, template: Template | None, recipient: str | None
) -> Page:
    """List mails, the newest first; those that were sent or given up are kept for a week."""
    newest_first = Paging(page.limit, page.offset, "created_at")
    return operators.page(
        runtime(), newest_first, status=status, template=template, recipient=recipient
    )


@bp.post("/mail/outbox/flush")
@admin_required(opened_by=Scope.ADMIN, cost="outgoing")
@answers(FlushedData(), name="adminFlushMails")
def flush(by: Operator) -> Flushed:
    """Try every waiting mail now, until the SMTP server itself fails."""
    return operators.flush(runtime(), by)


@bp.post("/mail/outbox/<id>/retry")
@admin_required(opened_by=Scope.ADMIN)
@answers(OutboxMailData(), errors=(errors.MailNotFound, errors.MailFinished), name="adminRetryMail")
def retry(by: Operator, id: str) -> dict[str, Any]:
    """Make a mail that waits due now; one that was sent or given up has no content any more."""
    if not is_storable(id):
        raise errors.MailNotFound
    return operators.retry(runtime(), by, id)


@bp.get("/mail/templates")
@admin_may_read()
@answers(fields.List(fields.Nested(MailTemplateData)), name="adminListMailTemplates")
def list_templates() -> list[dict[str, Any]]:
    """List the kinds of mails."""
    return [_described(runtime(), template) for template in Template]


@bp.post("/mail/templates/<template>/preview")
@admin_may_read(opened_by=Scope.ADMIN)
@json_body(PreviewSchema)
@answers(
    PreviewData(),
    errors=(errors.TemplateUnknown, errors.TemplateInvalid),
    name="adminPreviewMail",
)
def preview(
    template: str, subject: str | None, html: str | None, language: str | None
) -> dict[str, Any]:
    """Show a mail with sample values, as a draft would make it; nothing is sent or set."""
    rt, kind = runtime(), _template(template)
    shown = previews.preview(rt, kind, Draft(subject, html, language))
    query = urlencode({"draft": previews.keep_draft(rt, kind, shown.rendered.html)})
    return {
        "subject": shown.rendered.subject,
        "html": shown.rendered.html,
        "text": shown.rendered.text,
        "unknown_placeholders": shown.unknown,
        "missing_placeholders": shown.missing,
        "preview_url": f"{PREFIX}/mail/templates/{kind}/preview.html?{query}",
    }


@bp.get("/mail/templates/<template>/preview.html")
@admin_may_read()
@query_args(DraftQuery)
@answers(
    media_type="text/html",
    errors=(errors.TemplateUnknown, errors.DraftGone),
    name="adminShowMailPreview",
)
def preview_html(template: str, draft: str | None) -> Response:
    """Return the HTML of a draft, or of the template in force, for a sandboxed frame."""
    rt, kind = runtime(), _template(template)
    if draft is None:
        html = previews.preview(rt, kind).rendered.html
    else:
        html = previews.kept_html(rt, kind, draft)
    response = Response(html, content_type="text/html; charset=utf-8")
    response.headers["Content-Security-Policy"] = SHUT_IN
    return response


@bp.get("/config/template-variables")
@admin_may_read()
@answers(fields.List(fields.Nested(TemplateVariablesData)), name="adminListTemplateVariables")
def template_variables() -> list[dict[str, Any]]:
    """List the placeholders of every mail template."""
    return [variables_of(kind, about.variables) for kind, about in DESCRIPTIONS.items()]


@bp.post("/config/<key>/action")
@admin_required(cost="outgoing")
@json_body(MailActionSchema)
@answers(MessageData(), errors=TEST_MAIL_ERRORS, name="adminSendTestMail")
def act(by: Operator, key: str, action: str, target_email: str | None) -> dict[str, str]:
    """Send a test mail at once; the only action there is, of the settings named `mail`."""
    if (key, action) != ("mail", SEND_TEST_MAIL):
        raise errors.ActionUnknown
    own = by.principal.account.email if by.principal else ""
    try:
        recipient = email_address.normalized(target_email or own)
    except ValueError as error:
        raise errors.RecipientInvalid(f"This is not a valid e-mail address: {error}") from None
    operators.send_test(runtime(), by, recipient)
    return {"message": f"The SMTP server accepted a mail to {recipient}."}


def _template(name: str) -> Template:
    try:
        return Template(name)
    except ValueError:
        raise errors.TemplateUnknown from None


def _described(rt: Runtime, template: Template) -> dict[str, Any]:
    subject, html = (
        mail_keys.MAIL_TEMPLATE_SUBJECTS[template],
        mail_keys.MAIL_TEMPLATE_HTML[template],
    )
    return {
        "template": template,
        "description": f"The mail {mail_keys.MAILS[template].purpose}",
        "is_overridden": bool(rt.settings.get(subject) or rt.settings.get(html).strip()),
        "subject_key": subject.name,
        "html_key": html.name,
        "variables": DESCRIPTIONS[template].variables,
    }
