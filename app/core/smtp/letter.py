"""One mail as it travels (RFC 5322, RFC 2045 to 2047).

Put together by hand: the standard library's EmailMessage takes far longer for the same, and the
requests beside it would wait for that.
"""

import binascii
from dataclasses import dataclass, field
from datetime import datetime
from email.header import Header
from email.utils import format_datetime, formataddr

from app.core.tokens import random_hex

CRLF = "\r\n"
LONGEST_LINE = 998  # RFC 5322, section 2.1.1
FOLDED_FROM = 76


@dataclass(frozen=True)
class Letter:
    """One mail, ready to leave; `sender_name` and `recipient_name` may be empty."""

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
        """Return headers and both parts.

        Raises: ValueError when a header holds a control character.
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
            "Auto-Submitted": "auto-generated",  # so that no out-of-office answers (RFC 3834)
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
    """Return a field's text, folded and encoded as needed."""
    if _is_plain(text) and len(f"{field}: {text}") <= FOLDED_FROM:
        return text
    charset = "us-ascii" if _is_plain(text) else "utf-8"
    return Header(text, charset, header_name=field).encode(linesep=CRLF)


def _is_plain(text: str) -> bool:
    """Tell whether a text needs no encoding, also to not be taken for an encoded one."""
    return text.isascii() and "=?" not in text


def _part(kind: str, content: str) -> list[str]:
    lines = content.splitlines()
    if kind == "plain" and content.isascii() and all(len(line) <= LONGEST_LINE for line in lines):
        # As it is, so that a link in a file can be copied from a terminal.
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
