"""One mail in wire format (RFC 5322, RFC 2045 to 2047).

Assembled by hand: the standard library's EmailMessage takes far longer for the same, which would
delay concurrent requests.
"""

import binascii
from dataclasses import dataclass, field
from datetime import datetime
from email.header import Header
from email.utils import format_datetime, formataddr

from app.core.tokens import random_hex

CRLF = "\r\n"
MAX_LINE_LENGTH = 998  # RFC 5322, section 2.1.1
FOLDED_FROM = 76


@dataclass(frozen=True)
class Letter:
    """One mail, ready to send; `sender_name` and `recipient_name` may be empty."""

    sender: str
    sender_name: str
    recipient: str
    recipient_name: str
    subject: str = field(repr=False)
    text: str = field(repr=False)
    html: str = field(repr=False)
    message_id: str
    written_at: datetime

    def as_bytes(self) -> bytes:
        """Return the headers and both parts, encoded.

        Raises: ValueError if a header holds a control character.
        """
        for text in (
            self.sender,
            self.sender_name,
            self.recipient,
            self.recipient_name,
            self.subject,
            self.message_id,
        ):
            if not text.isprintable():
                raise ValueError("a header holds a control character")
        boundary = f"=_{random_hex()}"
        headers = {
            "From": _address("From", self.sender_name, self.sender),
            "To": _address("To", self.recipient_name, self.recipient),
            "Subject": _encoded("Subject", self.subject),
            "Date": format_datetime(self.written_at),
            "Message-ID": self.message_id,
            "Auto-Submitted": "auto-generated",  # suppresses out-of-office replies (RFC 3834)
            "MIME-Version": "1.0",
            "Content-Type": f'multipart/alternative; boundary="{boundary}"',
        }
        lines = [f"{name}: {value}" for name, value in headers.items()]
        for kind, content in (("plain", self.text), ("html", self.html)):
            lines += ["", f"--{boundary}", *_part(kind, content)]
        lines += ["", f"--{boundary}--", ""]
        return CRLF.join(lines).encode("ascii")


def _address(field: str, name: str, address: str) -> str:
    if _is_plain(name):
        return formataddr((name, address))
    return f"{_encoded(field, name)} <{address}>"


def _encoded(field: str, text: str) -> str:
    """Return a header field's text, folded and encoded as needed."""
    if _is_plain(text) and len(f"{field}: {text}") <= FOLDED_FROM:
        return text
    charset = "us-ascii" if _is_plain(text) else "utf-8"
    return Header(text, charset, header_name=field).encode(linesep=CRLF)


def _is_plain(text: str) -> bool:
    """Return whether a text needs no encoding, and cannot be mistaken for an encoded one."""
    return text.isascii() and "=?" not in text


def _part(kind: str, content: str) -> list[str]:
    lines = content.splitlines()
    if (
        kind == "plain"
        and content.isascii()
        and all(len(line) <= MAX_LINE_LENGTH for line in lines)
    ):
        # Left unencoded, so that a link in a mail file can be copied from a terminal.
        encoding = "7bit"
    else:
        encoding = "quoted-printable"
        encoded = binascii.b2a_qp("\n".join(lines).encode(), istext=True)
        lines = encoded.decode("ascii").split("\n")
    return [
        f"Content-Type: text/{kind}; charset=utf-8",
        f"Content-Transfer-Encoding: {encoding}",
        "",
        *lines,
    ]
