"""Request bodies and queries of e-mail verification and change."""

from marshmallow import fields

from app.web.schema import MAX_INPUT_LENGTH, RequestSchema, text


class ConfirmQuery(RequestSchema):
    """GET /auth/contact-verification/confirm; every text is taken, since most are just unknown."""

    token = fields.String(load_default="")


class RequestEmailChangeSchema(RequestSchema):
    """POST /auth/email/change."""

    new_email = text(MAX_INPUT_LENGTH)
