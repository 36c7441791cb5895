"""A mail as it travels, read back as a mail program does."""

import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from glob import glob
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import app.core.letter
from app.core.email_address import Mailbox
from app.core.texts import one_line
from app.mail.mailer import Letter
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
@pytest.mark.parametrize(
    "nasty",
    [
        *("x\r\nBcc: eve@evil.example", "x\ny", "x\rz", "ü\r\n x: y", "x\0", "x\x85y"),
        *("x\u2028y", "\u202egpj.exe", "\u2066x", "\ud800"),
    ],
    ids=ascii,
)
def test_a_control_character_is_refused_in_every_header(field, nasty):
    with pytest.raises(ValueError, match="CR, LF or another control character"):
        letter(**{field: nasty}).as_bytes()


@pytest.mark.parametrize(
    "address",
    [
        "a@b.example\r\nBcc: c@d.example",
        "a b@c.example",
        "a@b.example>",
        "a@b c",
        "@b.example",
        "a",
    ],
)
def test_what_is_no_address_is_not_written(address):
    with pytest.raises(ValueError, match="no address"):
        letter(recipient=address).as_bytes()


# What stands in the headers, byte by byte.
HEADERS = [
    ({}, b"From: Files <files@files.example>\r\nTo: ada@example.com\r\nSubject: A subject"),
    ({"sender_name": ""}, b"From: files@files.example"),
    ({"sender_name": "Ada's Files"}, b"From: Ada's Files <files@files.example>"),
    ({"sender_name": "Files, Inc."}, b'From: "Files, Inc." <files@files.example>'),
    (
        {"sender_name": 'a "b" \\ <eve@evil.example>'},
        b'From: "a \\"b\\" \\\\ <eve@evil.example>" <files@files.example>',
    ),
    ({"sender_name": "Größe"}, b"From: =?utf-8?b?R3LDtsOfZQ==?= <files@files.example>"),
    (
        {"sender_name": "=?utf-8?q?eve?="},
        b"From: =?utf-8?b?PT91dGYtOD9xP2V2ZT89?= <files@files.example>",
    ),
    ({"recipient_name": "ada.lovelace"}, b'To: "ada.lovelace" <ada@example.com>'),
    ({"recipient": "a..b@docomo.ne.jp"}, b'To: "a..b"@docomo.ne.jp'),
    (
        {"recipient": "o'brien+x/y=z!#$%&*?^_`{|}~-@a.example"},
        b"To: o'brien+x/y=z!#$%&*?^_`{|}~-@a.example",
    ),
    # As an older version may have stored them.
    (
        {"recipient": "=?utf-8?q?x=40evil.test=3e?=a@example.com"},
        b'To: "=\\?utf-8\\?q\\?x=40evil.test=3e\\?=a"@example.com',
    ),
    (
        {"recipient": "=?utf-8?q?x=2ceve=40evil.test?=@example.com", "recipient_name": "ada"},
        b'To: ada <"=\\?utf-8\\?q\\?x=2ceve=40evil.test\\?="@example.com>',
    ),
    ({"subject": ""}, b"Subject:\r\nDate: Mon, 02 Mar 2026 09:30:00 +0000"),
    ({"subject": "a: b; c, <d>"}, b"Subject: a: b; c, <d>"),
    ({"subject": "a =?utf-8?q?b?="}, b"Subject: =?utf-8?b?YSA9P3V0Zi04P3E/Yj89?="),
    ({"subject": "two  spaces"}, b"Subject: =?utf-8?b?dHdvICBzcGFjZXM=?="),
    (
        {"subject": "word " * 20 + "end"},
        b"Subject:" + b" word" * 13 + b"\r\n" + b" word" * 7 + b" end\r\nDate",
    ),
    # Of a newer Unicode than the oldest of these Pythons knows.
    (
        {"subject": one_line("\U0001fae8 ü\U0001f1e9\U0001f1ea")},
        b"Subject: =?utf-8?b?8J+rqCDDvPCfh6nwn4eq?=",
    ),
    (
        {"subject": "ü" * 30},
        b"Subject: =?utf-8?b?w7zDvMO8w7zDvMO8w7zDvMO8w7zDvMO8w7zDvMO8w7zDvMO8w7w=?=\r\n"
        b" =?utf-8?b?w7zDvMO8w7zDvMO8w7zDvMO8w7zDvA==?=\r\nDate",
    ),
]


@pytest.mark.parametrize(("changes", "header"), HEADERS, ids=lambda value: ascii(value)[:40])
def test_the_headers_byte_by_byte(changes, header):
    headers = letter(**changes).as_bytes().partition(b"\r\n\r\n")[0]
    assert header in headers
    assert max(map(len, headers.split(b"\r\n"))) <= 77


def pythons():
    """Return every Python at hand that the service may run with, this one among them."""
    root = os.environ.get("PYENV_ROOT", "~/.pyenv")
    places = [f"{folder}/python3.[0-9][0-9]" for folder in os.environ["PATH"].split(":")]
    places += ["/usr/bin/python3.[0-9][0-9]", "/usr/local/bin/python3.[0-9][0-9]"]
    places += [f"{os.path.expanduser(root)}/versions/3.*/bin/python3"]
    # Unlike a Path's, this passes over folders that cannot be read.
    found = {Path(path) for place in places for path in glob(place)}
    files = {path.resolve() for path in found if "shims" not in path.parts}
    return sorted({Path(sys.executable).resolve(), *filter(is_supported, files)})


def is_supported(python):
    ask = "import sys; v = sys.version_info; print(v >= (3, 11) and v.releaselevel == 'final')"
    asked = subprocess.run([python, "-Ic", ask], capture_output=True, text=True)
    return asked.stdout == "True\n"


WRITE = """
import json, runpy, sys
from datetime import datetime
written = runpy.run_path(sys.argv[1])["written"]
for fields in json.load(sys.stdin):
    mail = written(**fields | {"written_at": datetime.fromisoformat(fields["written_at"])})
    print(mail.hex())
"""
BOUNDARY = re.compile(rb"={15}\d+==")


def fields_of(*, sender_name="Files", recipient="ada@example.com", recipient_name="", **changes):
    return {
        "sender": ("files@files.example", sender_name),
        "recipient": (recipient, recipient_name),
        "subject": "A subject",
        "text": "One\r\nzwei: ä\n" + "x" * 1200,
        "html": "<p>One = two</p>\n." + "ü" * 100,
        "written_at": WRITTEN.isoformat(),
        "message_id": "<1@files.example>",
    } | changes


def test_every_python_writes_the_same_headers():
    """And needs nothing but itself, so that the oldest can be tried where only it is installed."""
    cases, found = [fields_of(**changes) for changes, _ in HEADERS], pythons()
    told = {}
    for python in found:
        ran = subprocess.run(
            [python, "-Ic", WRITE, app.core.letter.__file__],
            input=json.dumps(cases),
            capture_output=True,
            text=True,
            check=True,
        )
        mails = map(bytes.fromhex, ran.stdout.split())
        told[python] = [BOUNDARY.sub(b"-", one.partition(b"\r\n\r\n")[0]) for one in mails]
    [first, *others] = told.values()
    assert len(first) == len(cases)
    assert all(other == first for other in others), found
    for (_, header), headers in zip(HEADERS, first, strict=True):
        assert header in headers
