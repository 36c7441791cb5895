"""Logs in at an SMTP server, and notices where its answer would give the credentials away."""

import base64
import binascii
import hmac
import re
import smtplib
from collections.abc import Callable, Iterator

LOGGED_IN, CONTINUE = 235, 334  # the replies to AUTH (RFC 4954)
TELLING_LENGTH = 6  # a match of this many bytes is no coincidence

_BASE64 = re.compile(r"[A-Za-z0-9+/]{4,}")


def log_in(host: smtplib.SMTP, username: str, password: str) -> None:
    """Log in by the first way that the server offers and that succeeds.

    Raises: SMTPException.
    """
    try:
        if (username + password).isascii():
            host.login(username, password)
        else:  # which smtplib refuses
            _log_in_in_utf8(host, username.encode(), password.encode())
    except binascii.Error as error:
        raise smtplib.SMTPException("the server's challenge cannot be read") from error


def _log_in_in_utf8(host: smtplib.SMTP, username: bytes, password: bytes) -> None:
    """Log in by the same ways and in the same order as smtplib, in UTF-8 (RFC 4616, section 2)."""
    replies: dict[str, list[Callable[[bytes], bytes]]] = {
        "CRAM-MD5": [lambda challenge: b"%s %s" % (username, _signed(password, challenge))],
        "PLAIN": [lambda _: b"\0%s\0%s" % (username, password)],
        "LOGIN": [lambda _: username, lambda _: password],
    }
    host.ehlo_or_helo_if_needed()
    offered = host.esmtp_features.get("auth", "").split()
    refusal: Exception = smtplib.SMTPNotSupportedError("the server offers no way to log in")
    for way in filter(offered.__contains__, replies):
        code, text = host.docmd("AUTH", way)
        for reply in replies[way]:
            if code == CONTINUE:
                code, text = host.docmd(base64.b64encode(reply(text)).decode())
        if code == LOGGED_IN:
            return
        refusal = smtplib.SMTPAuthenticationError(code, text)
    raise refusal


def _signed(password: bytes, challenge: bytes) -> bytes:
    # MD5 is what RFC 2195 says; it protects nothing here that TLS does not.
    return hmac.new(password, base64.decodebytes(challenge), "md5").hexdigest().encode()


def repeats(reason: str, username: str, password: str) -> bool:
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
