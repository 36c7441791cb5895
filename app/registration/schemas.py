"""Bodies of the registration; `users` has the one of a new account."""

from app.web.schema import LONGEST_INPUT, RequestSchema, text


class ResendActivationSchema(RequestSchema):
    """POST /auth/register/resend."""

    identifier = text(LONGEST_INPUT)
