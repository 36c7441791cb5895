"""Reads the mails of a service without SMTP, which writes them to files instead."""

import email
import email.policy
import re
from collections.abc import Callable
from email.message import EmailMessage
from pathlib import Path
from typing import cast
from urllib.parse import parse_qs, urlsplit

# A link on a line of its own: an absolute URL, or a path while the site's origin is unknown.
LINK = re.compile(r"^(https?://\S+|/\S+)$", re.MULTILINE)


class Mailbox:
    """The mail folder; `deliver` is called before reading to write out the whole outbox."""

    def __init__(self, folder: Path, deliver: Callable[[], object] = lambda: None) -> None:
        self._folder = folder
        self._deliver = deliver
        self._seen: set[Path] = set()

    def read(self) -> list[EmailMessage]:
        """Return the mails that arrived since the last call, oldest first."""
        self._deliver()
        fresh = sorted(
            set(self._folder.glob("[!.]*.eml")) - self._seen,
            key=lambda path: (path.stat().st_mtime_ns, path.name),
        )
        self._seen.update(fresh)
        return [parsed(path.read_bytes()) for path in fresh]

    def only(self) -> EmailMessage:
        """Assert that there is exactly one new mail; return it."""
        mails = self.read()
        assert len(mails) == 1, [f"{mail['To']}: {mail['Subject']}" for mail in mails]
        return mails[0]

    def link(self, message: EmailMessage) -> str:
        """Return the only link in a mail's text part."""
        links = LINK.findall(text_of(message))
        assert len(links) == 1, text_of(message)
        return cast("str", links[0])

    def token(self, message: EmailMessage) -> str:
        """Return the token in that link."""
        parts = urlsplit(self.link(message))
        if tokens := parse_qs(parts.query).get("token"):
            return tokens[0]
        assert parts.path.startswith("/invite/"), parts
        return parts.path.rpartition("/")[2]


def parsed(raw: bytes) -> EmailMessage:
    """Parse a mail as a mail program does."""
    message = email.message_from_bytes(raw, policy=email.policy.default)
    assert isinstance(message, EmailMessage)
    return message


def text_of(message: EmailMessage) -> str:
    """Return the text part."""
    part = message.get_body(("plain",))
    assert part is not None, message
    return cast("str", part.get_content()).replace("\r\n", "\n")


def html_of(message: EmailMessage) -> str:
    """Return the HTML part."""
    part = message.get_body(("html",))
    assert part is not None, message
    return cast("str", part.get_content())
