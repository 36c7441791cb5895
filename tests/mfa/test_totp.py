"""The TOTP rule (RFC 6238)."""

import base64
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, unquote, urlsplit

import pyotp
import pytest

from app.mfa import totp

# RFC 6238, appendix B, SHA-1: seconds, and a code of 8 digits, of which ours is the end.
SEED = base64.b32encode(b"12345678901234567890").decode()
VECTORS = [
    (59, "94287082"),
    (1111111109, "07081804"),
    (1111111111, "14050471"),
    (1234567890, "89005924"),
    (2000000000, "69279037"),
    (20000000000, "65353130"),
]
NOW = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
STEP = int(NOW.timestamp()) // 30


def code_of(step):
    return pyotp.TOTP(SEED).generate_otp(step)


@pytest.mark.parametrize(("seconds", "code"), VECTORS)
def test_the_vectors_of_the_rfc_match(seconds, code):
    now = datetime.fromtimestamp(seconds, UTC)
    assert totp.matching_step(SEED, code[-6:], now) == seconds // 30
    assert totp.matching_step(SEED, code[:6], now) is None


def test_the_window_of_a_code_has_exact_edges():
    """A code of the step [0, 30) is good from -30 to just before 60 seconds."""
    code = code_of(STEP)
    for seconds, expected in [(-30.001, None), (-30, STEP), (59.999, STEP), (60, None)]:
        now = NOW + timedelta(seconds=seconds)
        assert totp.matching_step(SEED, code, now) == expected, seconds


def test_an_accepted_step_and_those_before_it_are_refused():
    for step in (STEP - 1, STEP):
        assert totp.matching_step(SEED, code_of(step), NOW, after=STEP) is None
    assert totp.matching_step(SEED, code_of(STEP + 1), NOW, after=STEP) == STEP + 1
    assert totp.matching_step(SEED, code_of(STEP), NOW, after=STEP - 1) == STEP


def test_anything_but_six_digits_is_no_code():
    texts = ["", " ", "12345", "1234567", "12345a", "-12345", "12.456", "½23456", "一二三四五六"]
    assert [typed for typed in texts if totp.normalised(typed) is not None] == []


def test_secrets_have_160_bits_and_no_padding():
    secrets = {totp.new_secret() for _ in range(50)}
    assert len(secrets) == 50
    for secret in secrets:
        assert len(secret) == 32
        assert len(base64.b32decode(secret)) == 20


def test_the_uri_is_read_back_by_authenticator_apps():
    uri = totp.otpauth_uri(SEED, "Ada & Söhne / 100%", "ada+x@example.com")
    parts = urlsplit(uri)
    assert (parts.scheme, parts.netloc) == ("otpauth", "totp")
    issuer, account = parts.path[1:].split(":")  # the colon between them is the only one
    assert (unquote(issuer), unquote(account)) == ("Ada & Söhne / 100%", "ada+x@example.com")
    assert parse_qs(parts.query) == {
        "secret": [SEED],
        "issuer": ["Ada & Söhne / 100%"],
        "algorithm": ["SHA1"],
        "digits": ["6"],
        "period": ["30"],
    }
    scanned = pyotp.parse_uri(totp.otpauth_uri(SEED, "Gatehouse", "ada@example.com"))
    assert (scanned.secret, scanned.issuer) == (SEED, "Gatehouse")
    assert scanned.name == "ada@example.com"


@pytest.mark.parametrize(
    ("title", "issuer"),
    [
        ("Acme: Files", "Acme Files"),
        (":Acme::", "Acme"),
        ("", "Gatehouse"),
        (": :", "Gatehouse"),
        ("\u2060", "Gatehouse"),
        ("Acme\u2028Files", "Acme Files"),
        ("100% %3A Files & more", "100% %3A Files & more"),
        ("Søk / + ? # = 🗂", "Søk / + ? # = 🗂"),
        ("f" * 120, "f" * 120),
        ("ф" * 120, "ф" * 31),
        ("🗂" * 120, "🗂" * 15),
    ],
)
def test_any_title_gives_a_uri_that_apps_can_scan(title, issuer):
    uri = totp.otpauth_uri(SEED, title, "user1@example.com")
    scanned = pyotp.parse_uri(uri)
    assert (scanned.issuer, scanned.name) == (issuer, "user1@example.com")
    assert (uri.count(":"), uri.upper().count("%3A")) == (2, 0)
