"""A mail as it travels, read back as a mail program does."""

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.email_address import Mailbox
from app.core.mailer import Letter
from app.core.texts import one_line
from tests.support.mailbox import html_of, parsed, text_of
from tests.support.strategies import CHARACTERS

WRITTEN = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
ANYTHING = st.text(CHARACTERS, max_size=300)
NAMES = ANYTHING.map(one_line)


def lines(text):
    """Return a text with one kind of line end, and none at its own end."""
    return "\n".join(text.splitlines()).rstrip("\n")


def letter(*, sender_name="Files", recipient="ada@example.com", recipient_name="", **changes):
    fields = {
        "sender": Mailbox("files@files.example", sender_name),
        "recipient": Mailbox(recipient, recipient_name),
        "subject": "A subject",
        "text": "One\ntwo\n",
        "html": "<p>One</p>\n",
        "written_at": WRITTEN,
    }
    return Letter(**(fields | changes))


@given(subject=NAMES, sender_name=NAMES, recipient_name=NAMES, text=ANYTHING, html=ANYTHING)
def test_whatever_it_says_arrives_and_nothing_else(
    subject, sender_name, recipient_name, text, html
):
    raw = letter(
        subject=subject,
        sender_name=sender_name,
        recipient_name=recipient_name,
        text=text,
        html=html,
    ).as_bytes()
    assert all(len(line) <= 998 for line in raw.split(b"\r\n"))
    assert not re.search(rb"[^\r]\n|\r[^\n]", raw)
    message = parsed(raw)
    assert message.keys() == [
        "From",
        "To",
        "Subject",
        "Date",
        "Message-ID",
        "Auto-Submitted",
        "MIME-Version",
        "Content-Type",
    ]
    assert [part.get_content_type() for part in message.walk()] == [
        "multipart/alternative",
        "text/plain",
        "text/html",
    ]
    assert message["From"].addresses[0].addr_spec == "files@files.example"
    assert message["To"].addresses[0].addr_spec == "ada@example.com"
    assert "".join(message["Subject"].split()) == "".join(subject.split())
    assert lines(text_of(message)) == lines(text)
    assert lines(html_of(message)) == lines(html)


@pytest.mark.parametrize("text", ["short", "ä" * 40, "a long subject " * 12, "x, y"])
def test_a_subject_and_a_name_come_back_as_they_were(text):
    message = parsed(letter(subject=text.strip(), sender_name=text.strip()).as_bytes())
    assert message["Subject"] == text.strip()
    # The standard library reads a space between two encoded words that is none
    # (RFC 2047, section 6.2).
    name = message["From"].addresses[0].display_name
    assert name.replace(" ", "") == text.replace(" ", "")


def test_a_plain_text_is_not_encoded_so_that_its_link_can_be_copied():
    link = "https://files.example/" + "x" * 200 + "?token=a=b"
    assert link.encode() in letter(text=f"Go:\n{link}\n").as_bytes()


@pytest.mark.parametrize("field", ["subject", "sender_name", "recipient_name"])
@pytest.mark.parametrize("nasty", ["x\r\nBcc: eve@evil.example", "x\ny", "x\rz", "ü\r\n x: y"])
def test_a_line_break_is_refused_in_every_header(field, nasty):
    with pytest.raises(ValueError, match=r"CR|linefeed"):
        letter(**{field: nasty}).as_bytes()
