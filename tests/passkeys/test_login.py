"""Signing in with a passkey (spec 02 §2.7, §2.8; decisions A9, A17a, E21)."""

from tests.support.passkeys import log_in


def test_a_passkey_signs_in(stranger, device, passkey, user):
    assert log_in(stranger, device).ok() == {"status": "authenticated", "expires_in": 900}
    assert stranger.me().ok()["id"] == user.id
