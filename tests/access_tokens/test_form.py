"""What an access token looks like."""

import re
import zlib

import pytest

from app.access_tokens import form
from app.crypto import tokens

# Anybody may find one with this, and check it without asking us.
PATTERN = re.compile(r"gth_[0-9A-Za-z]{49}")
DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def number_of(text):
    value = 0
    for digit in text:
        value = value * 62 + DIGITS.index(digit)
    return value


def test_it_is_256_random_bits_and_the_checksum_of_what_stands_before():
    text = form.new_token()
    assert PATTERN.fullmatch(text)
    assert number_of(text[4:47]) < 2**256
    assert number_of(text[47:]) == zlib.crc32(text[:47].encode())
    assert form.new_token() != text


def test_small_numbers_are_filled_with_zeros(monkeypatch):
    monkeypatch.setattr(form, "random_bytes", lambda: bytes(31) + b"\x3d")
    text = form.new_token()
    assert text.startswith("gth_" + "0" * 42 + "z")
    assert form.is_well_formed(text)


def test_the_largest_number_has_its_place(monkeypatch):
    monkeypatch.setattr(form, "random_bytes", lambda: b"\xff" * 32)
    assert number_of(form.new_token()[4:47]) == 2**256 - 1


TOKEN = "gth_" + "0" * 43 + "2AvD68"


@pytest.fixture
def token():
    return form.new_token()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda t: t[:-1] + ("0" if t[-1] != "0" else "1"),
        lambda t: t[:10] + ("0" if t[10] != "0" else "1") + t[11:],
        lambda t: t[:-1],
        lambda t: t + "0",
        lambda t: " " + t[1:],
        lambda t: t.upper(),
        lambda t: t.replace("gth_", "gth-"),
        lambda t: t[:20] + "_" + t[21:],
        lambda t: t[:20] + "é" + t[21:],
        lambda t: t[:20] + "٣" + t[21:],
        lambda t: "gth_",
        lambda t: "",
    ],
)
def test_anything_else_is_none(token, spoil):
    assert form.is_well_formed(token)
    assert not form.is_well_formed(spoil(token))


def test_all_its_randomness_is_the_services(monkeypatch):
    monkeypatch.setattr(tokens.secrets, "token_bytes", lambda count: bytes(count), raising=False)
    assert form.new_token()[4:47] == "0" * 43
