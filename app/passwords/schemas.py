"""Request bodies of the password endpoints."""

from app.core.passwords import MAX_TYPED_PASSWORD_LENGTH
from app.users.schemas import PASSWORD_RULE
from app.web.schema import MAX_INPUT_LENGTH, RequestSchema, text


class ChangePasswordSchema(RequestSchema):
    """PUT /auth/password."""

    current_password = text(MAX_TYPED_PASSWORD_LENGTH)
    new_password = text(MAX_TYPED_PASSWORD_LENGTH, description=PASSWORD_RULE)


class RequestPasswordResetSchema(RequestSchema):
    """POST /auth/password/reset/request."""

    email = text(MAX_INPUT_LENGTH)


class ConfirmPasswordResetSchema(RequestSchema):
    """POST /auth/password/reset/confirm."""

    token = text(MAX_INPUT_LENGTH)
    new_password = text(MAX_TYPED_PASSWORD_LENGTH, description=PASSWORD_RULE)
