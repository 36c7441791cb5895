"""The form of refresh tokens: whoever once saw one cannot make another."""

import base64
from datetime import timedelta

import pytest

from app.crypto.keyring import Keyring
from app.sessions import refresh_token
from app.sessions.refresh_token import EXPIRY_BYTES, MAC_BYTES, SECRET_BYTES, SELECTOR_BYTES
from tests.support.factories import audit_rows

SECRET_BEGINS = SELECTOR_BYTES + EXPIRY_BYTES
MAC_BEGINS = SECRET_BEGINS + SECRET_BYTES
LENGTH = MAC_BEGINS + MAC_BYTES


def raw_of(text):
    return bytearray(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))


def text_of(raw):
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def is_refused_without_harm(rt, signed_in, token):
    """Tell the token is invalid, and that nothing ended."""
    forger = signed_in.twin()
    forger.set_cookie("service_refresh", token)
    forger.refresh().fails(401, "auth.token_invalid")
    assert audit_rows(rt, "user_refresh_token_reuse_detected") == []
    signed_in.me().ok()
    signed_in.refresh().ok()


@pytest.mark.parametrize(
    "position",
    [0, SELECTOR_BYTES, SECRET_BEGINS - 1, SECRET_BEGINS, MAC_BEGINS - 1, MAC_BEGINS, LENGTH - 1],
)
def test_a_token_with_one_altered_bit_is_none(rt, clock, position):
    token = raw_of(refresh_token.new(rt.keyring, clock.now()).text)
    assert len(token) == LENGTH
    assert refresh_token.parse(rt.keyring, text_of(token)) is not None
    for bit in (0x01, 0x80):
        altered = bytearray(token)
        altered[position] ^= bit
        assert refresh_token.parse(rt.keyring, text_of(altered)) is None


def test_a_spent_token_with_an_altered_secret_is_invalid_and_ends_nothing(rt, signed_in):
    """Who knows a selector cannot raise the alarm with it."""
    raw = raw_of(signed_in.refresh_token)
    signed_in.refresh().ok()
    raw[SECRET_BEGINS] ^= 1
    is_refused_without_harm(rt, signed_in, text_of(raw))


def test_a_token_put_together_from_two_genuine_ones_is_invalid(rt, signed_in, clock):
    first = raw_of(signed_in.refresh_token)
    clock.advance(hours=1)
    signed_in.refresh().ok()
    second = raw_of(signed_in.refresh_token)
    for cut in (SECRET_BEGINS, MAC_BEGINS):
        is_refused_without_harm(rt, signed_in, text_of(second[:cut] + first[cut:]))


def test_a_token_with_something_appended_is_none(rt, clock):
    text = refresh_token.new(rt.keyring, clock.now()).text
    assert refresh_token.parse(rt.keyring, text) is not None
    for ending in ("=", "A", " ", "\n", "\u00e4"):
        assert refresh_token.parse(rt.keyring, text + ending) is None, ascii(ending)


def test_the_unused_bits_of_the_last_sign_must_be_zero(rt, signed_in):
    """68 bytes leave bits over; a token that differs in them alone would have another digest."""
    text = signed_in.refresh_token
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    same_bytes = [
        sign for sign in alphabet if raw_of(text[:-1] + sign) == raw_of(text) and sign != text[-1]
    ]
    assert same_bytes
    for sign in same_bytes:
        assert refresh_token.parse(rt.keyring, text[:-1] + sign) is None


def test_a_token_of_another_installation_is_invalid(rt, make_app, signed_in, clock):
    foreign = make_app(secret_keys=(("test", b"another secret of the same name."),))
    keyring = foreign.extensions["gatehouse"].keyring
    selector = bytes(raw_of(signed_in.refresh_token)[:SELECTOR_BYTES])
    forged = refresh_token.new(keyring, clock.now(), selector=selector)
    is_refused_without_harm(rt, signed_in, forged.text)


# --- rotation of the installation's keys -------------------------------------------------------


@pytest.fixture
def app(make_app):
    """With keys in a file, which can be rotated."""
    return make_app(secret_keys=())


def test_tokens_of_a_retired_key_go_on(rt, signed_in):
    for _ in range(3):
        rt.keyring.rotate()
        signed_in.refresh().ok()
    signed_in.me().ok()


def test_a_token_spent_before_a_rotation_of_the_keys_is_still_recognised(rt, signed_in):
    thief = signed_in.twin()
    signed_in.refresh().ok()
    rt.keyring.rotate()
    thief.refresh().fails(401, "auth.refresh_token_reuse_detected")
    signed_in.me().fails(401, "auth.token_invalid")


def test_a_token_issued_after_a_rotation_is_the_new_keys(rt, signed_in):
    old_keys = rt.keyring.keys
    fresh = rt.keyring.rotate()
    signed_in.refresh().ok()
    raw = bytes(raw_of(signed_in.refresh_token))
    body, mac = raw[:MAC_BEGINS], raw[MAC_BEGINS:]
    assert refresh_token._mac(fresh, body) == mac
    assert all(refresh_token._mac(key, body) != mac for key in old_keys)


def test_a_token_of_a_key_that_another_worker_has_just_seen_is_good_at_once(rt, signed_in, clock):
    """Or who signs in there and refreshes here within the same second is signed out."""
    elsewhere = Keyring(rt.config, clock)
    elsewhere.rotate()
    selector = refresh_token.parse(rt.keyring, signed_in.refresh_token).selector
    token = refresh_token.new(elsewhere, clock.now() + timedelta(days=1), selector=selector)
    assert refresh_token.parse(rt.keyring, token.text) == token
    assert rt.keyring.keys == elsewhere.keys
