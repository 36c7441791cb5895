"""The spellings that tokens and ids have."""

import string
import uuid

import pytest

from app.core import base64url
from app.crypto.tokens import random_uuid

ALPHABET = string.ascii_letters + string.digits + "-_"


@pytest.mark.parametrize(
    "raw", [b"", b"\0", b"\xff", b"\xfb\xef", b"\xff\xfe\xfd", bytes(range(256))]
)
def test_binary_values_come_back(raw):
    text = base64url.encoded(raw)
    assert set(text) <= set(ALPHABET)
    assert base64url.decoded(text) == raw


@pytest.mark.parametrize("stem", ["", "A", "Ab", "_-9", "Abcd", "AbcdE"])
def test_each_value_has_one_spelling(stem):
    values = {}
    for last in ALPHABET:
        text = stem + last
        try:
            raw = base64url.decoded(text)
        except ValueError:
            continue
        assert raw not in values
        values[raw] = text
        assert base64url.encoded(raw) == text
    assert len(values) == {0: 64, 1: 0, 2: 4, 3: 16}[len(stem + "x") % 4]


@pytest.mark.parametrize("text", ["AA==", "AA=", "A+", "A/", "AA\n", "A A", "\xe9A", "AAAAA"])
def test_nothing_else_is_read(text):
    with pytest.raises(ValueError, match=r"base64url|canonical"):
        base64url.decoded(text)


def test_ids_are_random_uuids():
    """RFC 9562 §5.4."""
    ids = [random_uuid() for _ in range(1000)]
    assert len(set(ids)) == 1000
    for text in ids:
        parsed = uuid.UUID(text)
        assert str(parsed) == text
        assert (parsed.version, parsed.variant) == (4, uuid.RFC_4122)
    # Every other bit is as often set as not: 122 of them, each some 500 times.
    for bit in set(range(128)) - {62, 63, 76, 77, 78, 79}:
        count = sum(uuid.UUID(text).int >> bit & 1 for text in ids)
        assert 350 < count < 650
