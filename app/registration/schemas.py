"""Request bodies of registration; the one of a new account is in `users`."""

from app.web.schema import MAX_INPUT_LENGTH, RequestSchema, text


class ResendActivationSchema(RequestSchema):
    """POST /auth/register/resend."""

    identifier = text(MAX_INPUT_LENGTH)
