"""Why a mail that a caller waits for was not sent, and what operators are refused."""

from app.core.errors import BadRequest, Conflict, ErrorCode, NotFound, Unavailable


class MailNotConfigured(Unavailable):
    """No SMTP server or no sender address is set."""

    code = ErrorCode.MAIL_NOT_CONFIGURED
    message = "Mail is not configured: mail_smtp_host and mail_from_address must be set."


class MailDeliveryFailed(Unavailable):
    """The SMTP server did not accept the mail."""

    code = ErrorCode.MAIL_DELIVERY_FAILED
    message = "The mail could not be sent."


class MailNotFound(NotFound):
    """There is no such mail in the outbox."""

    message = "There is no such mail; finished ones are kept for a week."


class MailFinished(Conflict):
    """The mail was sent or given up, and its content erased."""

    message = "The mail was sent or given up, and its content is erased: have it asked for anew."


class TemplateUnknown(NotFound):
    """There is no mail of this kind."""

    message = "There is no such mail template."


class TemplateInvalid(BadRequest):
    """The draft cannot be a template."""

    message = "The draft is not valid."


class DraftGone(NotFound):
    """The draft was kept for five minutes, or never."""

    message = "The draft is no longer kept; make the preview anew."


class ActionUnknown(BadRequest):
    """The only action is a test mail."""

    message = "There is only the action send_test_email, of the settings named mail."


class RecipientInvalid(BadRequest):
    """A mail cannot be sent to what was given as an address."""

    message = "This is not a valid e-mail address."
