"""Why a mail was not sent, in words that are safe to store and to log."""

import base64
import re
import smtplib
import ssl
from collections.abc import Iterator

from app.core.texts import one_line

MAX_REASON_LENGTH = 255
PERMANENT = range(500, 600)
CLOSING = 421  # to any command: the server is closing the connection (RFC 5321, section 3.8)
TELLING_LENGTH = 6  # a match of this many bytes is no coincidence

_BASE64 = re.compile(r"[A-Za-z0-9+/]{4,}")


class Undeliverable(Exception):
    """A mail was not accepted.

    `reason` is short, without a full stop, and repeats neither the mail nor a password. `is_final`:
    a retry is pointless, since the recipient was refused permanently. `is_server_failure`: any
    other mail would have failed as well. `may_be_mail_specific`: or this mail alone may be at
    fault, as the server had accepted login and sender by then. `may_have_arrived`: the server has
    the content and never said whether it accepts it, so that a retry may deliver it twice.
    """

    may_be_mail_specific = False
    may_have_arrived = False

    def __init__(
        self, reason: str, *, is_final: bool = False, is_server_failure: bool = False
    ) -> None:
        self.reason = one_line(reason)[:MAX_REASON_LENGTH].rstrip(".")
        self.is_final = is_final
        self.is_server_failure = is_server_failure
        super().__init__(self.reason)


def undeliverable(error: Exception, username: str, password: str) -> Undeliverable:
    """Translate an error of smtplib; its reason never repeats the credentials."""
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        [(code, text), *_] = error.recipients.values()
        reason = f"the server refused the recipient: {_reply(code, text)}"
        return Undeliverable(reason, is_final=code in PERMANENT, is_server_failure=code == CLOSING)
    if isinstance(error, smtplib.SMTPDataError):
        # Its text may quote the mail, so only the codes are kept.
        reply = _reply(error.smtp_code, error.smtp_error).split()
        codes = [word for word in reply[:2] if word.replace(".", "").isdigit()]
        reason = f"the server refused the mail: {' '.join(codes)}"
        return Undeliverable(reason, is_server_failure=error.smtp_code == CLOSING)
    reason = _reason(error)
    if _repeats(reason, username, password):
        reason = "the server repeats the log-in in its refusal"
    return Undeliverable(reason, is_server_failure=True)


def _repeats(reason: str, username: str, password: str) -> bool:
    """Return whether a text contains the password, or the start of either credential in base64.

    That is how AUTH sends them, alone or combined (RFC 4616, RFC 2195). The plain user name is no
    secret; servers usually quote it.
    """
    if password and password in reason:
        return True
    begun = [text.encode()[:TELLING_LENGTH] for text in (username, password) if text]
    return any(text in decoded for decoded in _decoded(reason) for text in begun)


def _decoded(text: str) -> Iterator[bytes]:
    """Yield every decoding of what may be base64 in a text.

    It may start anywhere, since the characters before it may be in the base64 alphabet, too; it may
    also be cut short, or split across lines.
    """
    for run in _BASE64.findall("".join(text.split())):
        for start in range(4):
            letters = run[start:]
            if len(letters) % 4 == 1:  # the last one holds less than a byte
                letters = letters[:-1]
            yield base64.b64decode(letters + "=" * (-len(letters) % 4))


def _reason(error: Exception) -> str:
    if isinstance(error, smtplib.SMTPSenderRefused):
        return f"the server refused the sender: {_reply(error.smtp_code, error.smtp_error)}"
    if isinstance(error, smtplib.SMTPAuthenticationError):
        reply = _reply(error.smtp_code, error.smtp_error)
        return f"the server refused user name and password: {reply}"
    if isinstance(error, smtplib.SMTPResponseException):
        return f"the server answered: {_reply(error.smtp_code, error.smtp_error)}"
    if isinstance(error, smtplib.SMTPServerDisconnected):
        cause = error.__context__
        return _of_connection(cause) if isinstance(cause, OSError) else "the server hung up"
    if isinstance(error, smtplib.SMTPException):
        return str(error)  # such as a missing extension
    if isinstance(error, OSError):
        return _of_connection(error)
    return "a setting has letters that SMTP cannot carry"


def _of_connection(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "the server did not answer in time"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the server's certificate is not valid: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed: {error.reason or 'the server hung up'}"
    return f"the server cannot be reached: {error.strerror or error}"


def _reply(code: int, text: bytes | str) -> str:
    words = text.decode(errors="replace") if isinstance(text, bytes) else text
    return f"{code} {words}"
