"""Bodies of the password endpoints."""

from app.core.passwords import LONGEST_TYPED_PASSWORD
from app.web.schema import RequestSchema, text


class ChangePasswordSchema(RequestSchema):
    """PUT /auth/password."""

    current_password = text(LONGEST_TYPED_PASSWORD)
    new_password = text(LONGEST_TYPED_PASSWORD)
