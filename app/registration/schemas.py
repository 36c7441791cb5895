"""Bodies of the registration; `setup` has the one of a new account."""

from app.login.schemas import LONGEST_IDENTIFIER
from app.web.schema import RequestSchema, text


class ResendActivationSchema(RequestSchema):
    """POST /auth/register/resend."""

    identifier = text(LONGEST_IDENTIFIER)
