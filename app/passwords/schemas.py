"""Request bodies of the password endpoints."""

from app.core.passwords import LONGEST_TYPED_PASSWORD
from app.users.schemas import PASSWORD_RULE
from app.web.schema import LONGEST_INPUT, RequestSchema, text


class ChangePasswordSchema(RequestSchema):
    """PUT /auth/password."""

    current_password = text(LONGEST_TYPED_PASSWORD)
    new_password = text(LONGEST_TYPED_PASSWORD, description=PASSWORD_RULE)


class RequestPasswordResetSchema(RequestSchema):
    """POST /auth/password/reset/request."""

    email = text(LONGEST_INPUT)


class ConfirmPasswordResetSchema(RequestSchema):
    """POST /auth/password/reset/confirm."""

    token = text(LONGEST_INPUT)
    new_password = text(LONGEST_TYPED_PASSWORD, description=PASSWORD_RULE)
