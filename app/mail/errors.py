"""Why a mail that a caller waits for was not sent."""

from app.core.errors import ErrorCode, Unavailable


class MailNotConfigured(Unavailable):
    """No SMTP server or no sender address is set."""

    code = ErrorCode.MAIL_NOT_CONFIGURED
    message = "Mail is not configured: mail_smtp_host and mail_from_address must be set."


class MailDeliveryFailed(Unavailable):
    """The SMTP server did not accept the mail."""

    code = ErrorCode.MAIL_DELIVERY_FAILED
    message = "The mail could not be sent."
