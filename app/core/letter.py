"""Writes a mail in its wire format.

Invariant: a name, a subject and an address arrive as they are, and bring nothing along: no header,
no recipient, no encoding of their own. The headers are written here, since the standard library's
releases differ in what they fold, quote and take for encoded. So this needs no other module, and
the suite tries it with every Python at hand.
"""

import base64
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime

# What an encoded word begins with (RFC 2047). Many programs decode it wherever it stands.
ENCODED_WORD = "=?"
MAX_LINE_LENGTH = 998  # RFC 5322, section 2.1.1
FOLDED_LENGTH = 76  # RFC 2047, section 2
# An encoded word of so many bytes of UTF-8 fits on a line beside the name of any header.
ENCODED_BYTES = 39
MAX_WORD_LENGTH = 60

_WORDS = re.compile(r"[!-~]+(?: [!-~]+)*")
_ATOMS = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?: [A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*")
_DOT_ATOM = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*")
_LOCAL_PART = re.compile(r"[!-~]+")
_DOMAIN = re.compile(r"[A-Za-z0-9.-]+")
# Control characters, line and paragraph separators, lone surrogates, and what turns the direction
# of a text: by number, as the tables of Unicode differ from one Python to the next.
_FORBIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def written(
    *,
    sender: tuple[str, str],
    recipient: tuple[str, str],
    subject: str,
    text: str,
    html: str,
    written_at: datetime,
    message_id: str,
) -> bytes:
    """Return a mail; sender and recipient are an address and a name, which may be empty.

    Raises: ValueError for a control character in a header, and for what is no address.
    """
    headers = (
        _folded("From", _mailbox(*sender)),
        _folded("To", _mailbox(*recipient)),
        _folded("Subject", _unstructured(subject)),
        _folded("Date", [format_datetime(written_at)]),
        _folded("Message-ID", [_plain(message_id)]),
        # Suppresses out-of-office replies (RFC 3834).
        _folded("Auto-Submitted", ["auto-generated"]),
    )
    return "".join(headers).encode("ascii") + _body(text, html).as_bytes()


def local_part(local: str, *, in_header: bool = False) -> str:
    r"""Return a local part, in quotes where its dots want that (RFC 5321, section 4.1.2).

    In a header, one that a reader could take for an encoded word is broken up by a backslash, which
    is no part of the address.
    """
    is_encoded = in_header and ENCODED_WORD in local
    if _DOT_ATOM.fullmatch(local) and not is_encoded:
        return local
    quoted = re.sub(r'(["\\])', r"\\\1", local)
    return f'"{quoted.replace("?", chr(92) + "?") if is_encoded else quoted}"'


def _body(text: str, html: str) -> EmailMessage:
    mail = EmailMessage(policy=SMTP)
    # Not encoded if possible, so that a link in a mail file can be copied from a terminal.
    is_plain = text.isascii() and max(map(len, text.splitlines()), default=0) <= MAX_LINE_LENGTH
    mail.set_content(text, cte="7bit" if is_plain else "quoted-printable")
    mail.add_alternative(html, subtype="html", cte="quoted-printable")
    return mail


def _folded(name: str, words: Sequence[str]) -> str:
    """Return a header of words, each of which stays whole."""
    lines = [f"{name}:"]
    for number, word in enumerate(words):
        if number and len(lines[-1]) + 1 + len(word) > FOLDED_LENGTH:
            lines.append("")
        lines[-1] += f" {word}"
    return "\r\n".join(lines) + "\r\n"


def _unstructured(text: str) -> list[str]:
    _require_harmless(text)
    words = text.split(" ") if text else []
    is_plain = not text or (_WORDS.fullmatch(text) and ENCODED_WORD not in text)
    if is_plain and all(len(word) <= MAX_WORD_LENGTH for word in words):
        return words
    return list(_encoded(text))


def _mailbox(address: str, name: str) -> list[str]:
    _require_harmless(name)
    local, _, domain = address.rpartition("@")
    if not (_LOCAL_PART.fullmatch(local) and _DOMAIN.fullmatch(domain)):
        raise ValueError("this is no address of a mailbox")
    spec = f"{local_part(local, in_header=True)}@{domain}"
    return [*_phrase(name), f"<{spec}>"] if name else [spec]


def _phrase(name: str) -> list[str]:
    """Return a name as RFC 5322 wants it before an address: bare, in quotes, or encoded."""
    if not _WORDS.fullmatch(name) or ENCODED_WORD in name or len(name) > MAX_WORD_LENGTH:
        return list(_encoded(name))
    if _ATOMS.fullmatch(name):
        return [name]
    return ['"{}"'.format(re.sub(r'(["\\])', r"\\\1", name))]


def _encoded(text: str) -> Iterator[str]:
    """Yield a text as encoded words; none splits a character."""
    piece = b""
    for character in text:
        octets = character.encode()
        if len(piece) + len(octets) > ENCODED_BYTES:
            yield _encoded_word(piece)
            piece = b""
        piece += octets
    yield _encoded_word(piece)


def _encoded_word(octets: bytes) -> str:
    return f"=?utf-8?b?{base64.b64encode(octets).decode()}?="


def _plain(text: str) -> str:
    if not _WORDS.fullmatch(text):
        raise ValueError("a header of this kind is ASCII without spaces")
    return text


def _require_harmless(text: str) -> None:
    if _FORBIDDEN.search(text):
        raise ValueError("a header must not contain CR, LF or another control character")
