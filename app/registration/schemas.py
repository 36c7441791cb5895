"""Request bodies of registration; the one of a new account is in `users`."""

from app.web.schema import LONGEST_INPUT, RequestSchema, text


class ResendActivationSchema(RequestSchema):
    """POST /auth/register/resend."""

    identifier = text(LONGEST_INPUT)
