"""Bodies and queries about addresses."""

from marshmallow import fields

from app.setup.schemas import LONGEST_INPUT
from app.web.schema import RequestSchema, text


class ConfirmQuery(RequestSchema):
    """GET /auth/contact-verification/confirm; every text is taken, since most are just unknown."""

    token = fields.String(load_default="")


class ChangeEmailSchema(RequestSchema):
    """POST /auth/email/change."""

    new_email = text(LONGEST_INPUT)
