"""What is asked about mails, and what is shown of them."""

from typing import Any

from marshmallow import fields

from app.core import product
from app.mail.models import MailStatus
from app.mail.templates import Template
from app.settings.catalogue import SEND_TEST_MAIL
from app.web.paging import Filter, PageQuery
from app.web.schema import MAX_INPUT_LENGTH, Answer, RequestSchema, Text, Timestamp, Word, text

MAX_DRAFT_LENGTH = 65_536


class OutboxQuery(PageQuery):
    """GET /admin/mail/outbox."""

    status = fields.Enum(MailStatus, by_value=True, load_default=None)
    template = fields.Enum(Template, by_value=True, load_default=None)
    recipient = Filter("part of an address")


class OutboxMailData(Answer):
    """A mail without its content; `is_file`: it became a file, for lack of an SMTP server."""

    id = fields.UUID()
    template = Word(Template)
    recipient = fields.String(metadata={"examples": ["ada@example.com"]})
    status = Word(MailStatus)
    is_file = fields.Boolean()
    attempts = fields.Integer()
    last_error = fields.String(allow_none=True)
    created_at = Timestamp()
    due_at = Timestamp(allow_none=True)
    finished_at = Timestamp(allow_none=True)


class FlushedData(Answer):
    """How many mails were sent, given up, and still wait; `error` is why the server failed."""

    sent = fields.Integer()
    failed = fields.Integer()
    waiting = fields.Integer()
    error = fields.String(allow_none=True)


class MailTemplateData(Answer):
    """A kind of mail, the settings that replace its text, and the variables it knows."""

    template = Word(Template)
    description = fields.String()
    is_overridden = fields.Boolean()
    subject_key = fields.String()
    html_key = fields.String()
    variables = fields.List(fields.String(metadata={"examples": ["username"]}))


class PreviewSchema(RequestSchema):
    """POST /admin/mail/templates/{template}/preview; what is absent is as in force."""

    subject = text(MAX_DRAFT_LENGTH, nullable=True)
    html = text(MAX_DRAFT_LENGTH, nullable=True)
    language = text(35, nullable=True, example="en")


class PreviewData(Answer):
    """A mail with sample values; `preview_url` shows it in a frame, for five minutes."""

    subject = fields.String()
    html = fields.String()
    text = fields.String()
    unknown_placeholders = fields.List(fields.String(metadata={"examples": ["{{name}}"]}))
    missing_placeholders = fields.List(
        fields.String(metadata={"examples": ["{{reset_url}}"]}),
        metadata={"description": "without which the draft cannot be set"},
    )
    preview_url = fields.String()


class DraftQuery(RequestSchema):
    """Which draft is to be shown."""

    draft = Filter("the draft of a preview; without it, the template in force")


class TemplateVariableData(Answer):
    """A placeholder, with the names of its texts."""

    token = fields.String(metadata={"examples": ["{{username}}"]})
    label_i18n_key = fields.String()
    description_i18n_key = fields.String()


class TemplateVariablesData(Answer):
    """The placeholders of one kind of mail."""

    category = fields.String(metadata={"examples": ["mail.template"]})
    template_code = Word(Template)
    label_i18n_key = fields.String()
    variables = fields.List(fields.Nested(TemplateVariableData))


class MailActionSchema(RequestSchema):
    """POST /admin/config/mail/action."""

    action = text(MAX_INPUT_LENGTH, example=SEND_TEST_MAIL)
    target_email: Text = text(
        MAX_INPUT_LENGTH, nullable=True, description="by default the administrator's own address"
    )


def variables_of(template: Template, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the placeholders of one kind of mail, as a page of settings lists them."""
    return {
        "category": "mail.template",
        "template_code": template,
        "label_i18n_key": product.TEMPLATE_TEXT.format(template),
        "variables": [
            {
                "token": "{{" + name + "}}",
                "label_i18n_key": product.VARIABLE_TEXT.format(name, "label"),
                "description_i18n_key": product.VARIABLE_TEXT.format(name, "desc"),
            }
            for name in names
        ],
    }
