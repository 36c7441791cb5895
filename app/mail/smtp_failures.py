"""Why an SMTP server did not take a mail: what smtplib raises, in words and with consequences."""

import smtplib
import ssl

from app.core.texts import one_line
from app.mail.smtp_login import repeats
from app.mail.smtp_replies import PERMANENT, ReplyVerdict, apart_from, judge

REFUSALS = range(400, 600)  # any other error reply is malformed or incomplete
MAX_REASON_LENGTH = 255
CLOSING = 421  # to any command: the server is closing the connection (RFC 5321, section 3.8)


class Unwelcome(smtplib.SMTPHeloError):
    """The server refused the name that the client gave itself."""

    def __init__(self, code: int, text: bytes, name: str) -> None:
        super().__init__(code, text)
        self.name = name


class Undeliverable(Exception):
    """A mail was not accepted; unless it says otherwise, this mail has to wait, and others may go.

    `reason` is short, without a full stop, and repeats neither the mail nor a password. `is_final`:
    a retry is pointless, since the recipient was refused permanently. `is_server_failure`: any
    other mail would have failed as well. `may_be_mail_specific`: or this mail alone may be at
    fault, as the server had accepted login and sender by then. `may_have_arrived`: the server has
    the content and never said whether it accepts it, so that a retry may deliver it twice.
    `refusal` is what the server said of a recipient or a mail, apart from the address: said of
    several recipients in a row, it is the server's failure. None if it is of this recipient alone.
    """

    may_be_mail_specific = False
    may_have_arrived = False

    def __init__(
        self,
        reason: str,
        *,
        is_final: bool = False,
        is_server_failure: bool = False,
        refusal: str | None = None,
    ) -> None:
        self.reason = one_line(reason)[:MAX_REASON_LENGTH].rstrip(".")
        self.is_final = is_final
        self.is_server_failure = is_server_failure
        self.refusal = refusal
        super().__init__(self.reason)


def undeliverable(
    error: Exception, username: str, password: str, recipient: str = ""
) -> Undeliverable:
    """Translate an error of smtplib; its reason never repeats the credentials."""
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        [(code, text), *_] = error.recipients.values()
        return _refused(code, _text(text), recipient)
    if isinstance(error, smtplib.SMTPDataError):
        return _refused(error.smtp_code, _text(error.smtp_error), recipient, has_content=True)
    reason = _reason(error)
    if repeats(reason, username, password):
        reason = "the server repeated the credentials in its refusal"
    return Undeliverable(reason, is_server_failure=True)


def _refused(code: int, text: str, recipient: str, *, has_content: bool = False) -> Undeliverable:
    reason = f"the server refused the recipient: {code} {text}"
    if has_content:
        # Its text may quote the mail, so only the codes are kept.
        codes = [word for word in f"{code} {text}".split()[:2] if word.replace(".", "").isdigit()]
        reason = f"the server refused the mail: {' '.join(codes)}"
    if code == CLOSING:
        return Undeliverable(reason, is_server_failure=True)
    verdict = judge(code, text, recipient, has_content=has_content)
    said = f"{code} {apart_from(recipient, text)}"
    return Undeliverable(
        reason,
        is_final=verdict is not ReplyVerdict.WAITS,
        refusal=None if verdict is ReplyVerdict.ENDS else said,
    )


def _reason(error: Exception) -> str:
    if isinstance(error, Unwelcome):
        said = reply(error.smtp_code, error.smtp_error)
        return f"the server refused the name {error.name} (EHLO): {said}"
    if isinstance(error, smtplib.SMTPConnectError):
        return f"the server refused the connection: {reply(error.smtp_code, error.smtp_error)}"
    if isinstance(error, smtplib.SMTPSenderRefused):
        return f"the server refused the sender: {reply(error.smtp_code, error.smtp_error)}"
    if isinstance(error, smtplib.SMTPAuthenticationError):
        said = reply(error.smtp_code, error.smtp_error)
        is_for_now = error.smtp_code not in PERMANENT
        what = "to log anybody in for now" if is_for_now else "user name and password"
        return f"the server refused {what}: {said}"
    if isinstance(error, smtplib.SMTPResponseException):
        return f"the server answered: {reply(error.smtp_code, error.smtp_error)}"
    if isinstance(error, smtplib.SMTPServerDisconnected):
        cause = error.__context__
        return _of_connection(cause) if isinstance(cause, OSError) else "the server hung up"
    if isinstance(error, smtplib.SMTPException):
        return str(error)  # such as a missing extension
    if isinstance(error, OSError):
        return _of_connection(error)
    return "mail_smtp_host cannot be the name of a host"


def _of_connection(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "the server did not answer in time"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the server's certificate is not valid: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed: {error.reason or 'the server hung up'}"
    return f"the server cannot be reached: {error.strerror or error}"


def reply(code: int, text: bytes | str) -> str:
    """Return a reply as one text, which may have several lines."""
    return f"{code} {_text(text)}"


def _text(said: bytes | str) -> str:
    return said.decode(errors="replace") if isinstance(said, bytes) else said
