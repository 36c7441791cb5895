"""Bodies of the password endpoints."""

from app.web.schema import RequestSchema, text

LONGEST_TYPED_PASSWORD = 4096


class ChangePasswordSchema(RequestSchema):
    """PUT /auth/password."""

    current_password = text(LONGEST_TYPED_PASSWORD)
    new_password = text(LONGEST_TYPED_PASSWORD)
