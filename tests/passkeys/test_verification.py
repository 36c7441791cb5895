"""Every step of both WebAuthn ceremonies, one deviation at a time (WebAuthn Level 3 §7.1, §7.2)."""

import hashlib
import logging
import os

import pytest

from app.passkeys.models import Passkey
from tests.support.factories import audit_rows, count
from tests.support.passkeys import (
    AT,
    BE,
    BS,
    DEVICE_BOUND,
    EDDSA,
    ES256,
    RS256,
    SYNCED,
    UP,
    UV,
    Authenticator,
    Key,
    b64,
    log_in,
    register,
    rsa_key,
)

pytestmark = pytest.mark.usefixtures("site")

REFUSED = 401, "auth.credentials_failed"

# What both ceremonies check.
BENT = {
    "challenge of another ceremony": {"challenge": b64(os.urandom(32))},
    "no challenge": {"challenge": ""},
    "challenge in padded base64": {"client_data": {"challenge": b64(os.urandom(32)) + "="}},
    "another origin": {"origin": "https://evil.example"},
    "in a frame of another site": {"client_data": {"crossOrigin": True}},
    "under another site": {"client_data": {"topOrigin": "https://evil.example"}},
    "under another site, said otherwise": {
        "client_data": {"crossOrigin": ..., "topOrigin": "http://localhost"}
    },
    "another relying party": {"rp_id": "evil.example"},
    "an upper domain": {"rp_id": "com"},
    "user not present": {"flags": SYNCED & ~UP},
    "user not verified": {"flags": SYNCED & ~UV},
    "neither": {"flags": 0},
    "backed up without being eligible": {"flags": UP | UV | BS},
}
TYPES = ["webauthn.get", "webauthn.create", "payment.get", "", "WEBAUTHN.GET"]


def test_a_registration_is_refused(rt, signed_in):
    for bend, changes in BENT.items():
        answer = register(signed_in, Authenticator(), **changes)
        assert (answer.status, answer.code) == REFUSED, bend
    assert count(rt, Passkey) == 0
    assert audit_rows(rt, "user_passkey_register") == []


def test_a_login_is_refused(rt, stranger, device, passkey):
    for bend, changes in BENT.items():
        answer = log_in(stranger, device, **changes)
        assert (answer.status, answer.code, answer.set_cookies) == (*REFUSED, {}), bend
    assert audit_rows(rt, "user_passkey_login") == []
    log_in(stranger, device).ok()


TOLD = {
    "challenge of another ceremony": "Wrong challenge in response.",
    "in a frame of another site": "The page was in a frame of another site.",
    "another relying party": "Wrong RP ID hash in response.",
    "user not verified": "User verification required, but User Verified flag not set.",
    "backed up without being eligible": "It is backed up although it cannot be.",
}


def test_the_log_tells_the_operator_why(signed_in, caplog):
    caplog.set_level(logging.INFO, "app.passkeys")
    for bend in TOLD:
        register(signed_in, Authenticator(), **BENT[bend]).fails(*REFUSED)
    refused = "a passkey was refused at 'http://localhost'"
    assert caplog.messages == [f"{refused}: {why}" for why in TOLD.values()]


def test_the_log_tells_why_a_known_passkey_does_not_sign_in(stranger, device, passkey, caplog):
    caplog.set_level(logging.INFO, "app.passkeys")
    log_in(stranger, device, origin="http://localhost:1\nanother line").fails(*REFUSED)
    log_in(stranger, device, sign=Key.new(ES256).sign).fails(*REFUSED)
    assert caplog.messages == [
        "a passkey was refused at 'http://localhost:1\\nanother line': "
        "Invalid origin in CollectedClientData.",
        "a passkey was refused at 'http://localhost': Invalid signature.",
    ]


def test_the_type_is_that_of_the_ceremony(signed_in, device, passkey):
    for kind in TYPES:
        changes = {"client_data": {"type": kind}}
        if kind != "webauthn.create":
            register(signed_in, Authenticator(), **changes).fails(*REFUSED)
        if kind != "webauthn.get":
            log_in(signed_in.stranger(), device, **changes).fails(*REFUSED)


def test_what_browsers_leave_out_or_add_does_no_harm(signed_in):
    for client_data in (
        {"crossOrigin": ...},
        {"crossOrigin": None},
        {"other_keys_can_be_added_here": "do not compare"},
        {"tokenBinding": {"status": "supported"}},
    ):
        device = Authenticator()
        assert register(signed_in, device, client_data=client_data).status == 200, client_data
        answer = log_in(signed_in.stranger(), device, client_data=client_data)
        assert answer.status == 200, client_data


# --- signatures --------------------------------------------------------------------------------


def flipped(signature):
    """Return it with another last bit."""
    return bytes([*signature[:-1], signature[-1] ^ 1])


@pytest.mark.parametrize("alg", [ES256, RS256])
def test_a_signature_that_is_not_right_is_refused(signed_in, alg):
    device = Authenticator(alg=alg)
    register(signed_in, device).ok()
    held, other = device.passkeys[-1], Key.new(ES256)
    wrong = {
        "somebody else's": other.sign,
        "of something else": lambda message: held.key.sign(message + b"\0"),
        "tampered with": lambda message: flipped(held.key.sign(message)),
        "cut off": lambda message: held.key.sign(message)[:-1],
        "longer": lambda message: held.key.sign(message) + b"\0",
        "none": lambda _: b"",
        "of nulls": lambda _: bytes(72),
        "of the hash alone": lambda message: held.key.sign(hashlib.sha256(message).digest()),
    }
    for kind, sign in wrong.items():
        answer = log_in(signed_in.stranger(), device, sign=sign)
        assert (answer.status, answer.code) == REFUSED, kind
    log_in(signed_in.stranger(), device).ok()


# --- public keys -------------------------------------------------------------------------------


def es256(**changes):
    names = {"kty": 1, "alg": 3, "crv": -1, "x": -2, "y": -3}
    cose = Key.new(ES256).cose() | {names[name]: value for name, value in changes.items()}
    return {name: value for name, value in cose.items() if value is not ...}


def rs256(bits=2048, **changes):
    names = {"kty": 1, "alg": 3, "n": -1, "e": -2}
    cose = Key(RS256, rsa_key(bits)).cose()
    cose |= {names[name]: value for name, value in changes.items()}
    return {name: value for name, value in cose.items() if value is not ...}


KEYS = {
    "Ed25519, which is not offered": lambda: Key.new(EDDSA).cose(),
    "an algorithm nobody knows": lambda: es256(alg=-4711),
    "an algorithm with a text for a name": lambda: es256(alg="ES256"),
    "ES384 by name": lambda: es256(alg=-35),
    "ESP256, ES256's other name": lambda: es256(alg=-9),
    "a key type of another algorithm": lambda: es256(kty=3),
    "another curve": lambda: es256(crv=2),
    "no curve": lambda: es256(crv=...),
    "no y": lambda: es256(y=...),
    "a compressed point": lambda: es256(y=True),
    "a point beside the curve": lambda: es256(x=bytes(31) + b"\1"),
    "the point at infinity": lambda: es256(x=bytes(32), y=bytes(32)),
    "a coordinate too short": lambda: es256(x=b"\1"),
    "a coordinate too long": lambda: es256(x=bytes(33)),
    "a coordinate that is a number": lambda: es256(x=1),
    "RSA of 1024 bits": lambda: rs256(bits=1024),
    "RSA of 5000 bits": lambda: rs256(n=b"\xff" * 625),
    "RSA without an exponent": lambda: rs256(e=...),
    "RSA with an exponent of 1": lambda: rs256(e=b"\1"),
    "RSA with an even exponent": lambda: rs256(e=b"\2"),
    "RSA with a long exponent": lambda: rs256(e=b"\1" + bytes(4)),
    "RSA with numbers for bytes": lambda: rs256(n=1, e=3),
    "RSA of another type": lambda: rs256(kty=2),
    "RSA with SHA-1": lambda: rs256(alg=-65535),
    "RSA-PSS": lambda: rs256(alg=-37),
}


def test_a_key_that_is_not_offered_or_none_is_refused(rt, signed_in):
    for kind, cose in KEYS.items():
        answer = register(signed_in, Authenticator(), cose=cose())
        assert (answer.status, answer.code) == REFUSED, kind
    assert count(rt, Passkey) == 0


def test_rsa_of_4096_bits_is_accepted(signed_in):
    register(signed_in, Authenticator(), cose=rs256(bits=4096)).ok()


# --- credential ids ----------------------------------------------------------------------------


def test_credential_ids_of_1_to_1023_bytes_are_accepted(signed_in):
    for size in (1, 16, 64, 1023):
        device = Authenticator()
        assert register(signed_in, device, credential_id=os.urandom(size)).status == 200, size
        assert log_in(signed_in.stranger(), device).status == 200, size
    for size in (0, 1024):
        register(signed_in, Authenticator(), credential_id=bytes(size)).fails(*REFUSED)


def test_the_id_is_the_one_the_authenticator_attests(signed_in):
    other = b64(os.urandom(32))
    changes = {"credential": {"id": other, "rawId": other}}
    register(signed_in, Authenticator(), **changes).fails(*REFUSED)


def test_an_attestation_without_a_credential_is_refused(signed_in):
    data = hashlib.sha256(b"localhost").digest() + bytes([SYNCED]) + bytes(4)
    register(signed_in, Authenticator(), raw_authenticator_data=data).fails(*REFUSED)


# --- attestation -------------------------------------------------------------------------------


@pytest.mark.parametrize("alg", [ES256, RS256])
def test_packed_self_attestation_is_accepted(signed_in, alg):
    device = Authenticator(alg=alg)
    register(signed_in, device, fmt="packed").ok()
    log_in(signed_in.stranger(), device).ok()


def test_packed_self_attestation_must_be_signed_by_the_credential(signed_in):
    other = Key.new(ES256)
    register(signed_in, Authenticator(), fmt="packed", sign=other.sign).fails(*REFUSED)
    statement = {"alg": RS256, "sig": b"x"}
    register(signed_in, Authenticator(), fmt="packed", statement=statement).fails(*REFUSED)


# TPMS_ATTEST (TPM 2.0, part 2, section 10.12.12), whose `clockInfo.safe` is neither yes nor no.
CERTIFIED = b"\xffTCG\x80\x17" + 2 * b"\0\2ab" + bytes(16) + b"\x33" + bytes(8) + 2 * b"\0\2ab"


def test_a_statement_that_nobody_trusts_refuses_no_registration(signed_in):
    for changes in (
        {"fmt": "tpm", "statement": {"ver": "2.0", "alg": RS256, "certInfo": CERTIFIED}},
        {"fmt": "tpm", "statement": {}},
        {"fmt": "packed", "statement": {"alg": ES256, "sig": b"x", "x5c": [b"no certificate"]}},
        {"fmt": "fido-u2f", "statement": {"x5c": [], "sig": b""}},
        {"fmt": "apple", "statement": {"x5c": [b""]}},
        {"fmt": "android-safetynet", "statement": {"ver": "1", "response": b"a.b.c"}},
        {"fmt": "compound", "statement": [{"fmt": "tpm", "attStmt": {}}]},
        {"fmt": "of a later standard", "statement": 1},
    ):
        device = Authenticator()
        assert register(signed_in, device, **changes).status == 200, changes["fmt"]
        assert log_in(signed_in.stranger(), device).status == 200, changes["fmt"]


# --- counts and backups ------------------------------------------------------------------------


def test_an_authenticator_that_counts_never_counts_back(rt, signed_in):
    device = Authenticator(flags=DEVICE_BOUND, counts=True)
    stranger = signed_in.stranger()
    assert register(signed_in, device).ok()["sign_count"] == 1
    for sign_count, is_accepted in (
        (2, True),
        (2, False),
        (1, False),
        (0, False),
        (2**32 - 1, True),
    ):
        answer = log_in(stranger, device, count=sign_count)
        if is_accepted:
            answer.ok()
            [shown] = signed_in.get("/auth/passkeys").ok()
            assert shown["sign_count"] == sign_count
        else:
            answer.fails(*REFUSED)
    assert len(audit_rows(rt, "user_passkey_login")) == 2


def test_an_authenticator_that_does_not_count_may_go_on_so(signed_in, device, passkey):
    for _ in range(3):
        log_in(signed_in.stranger(), device).ok()
    assert signed_in.get("/auth/passkeys").ok()[0]["sign_count"] == 0


def test_one_may_begin_to_count(signed_in, device, passkey):
    log_in(signed_in.stranger(), device, count=7).ok()
    log_in(signed_in.stranger(), device, count=0).fails(*REFUSED)
    log_in(signed_in.stranger(), device, count=8).ok()


def test_whether_a_passkey_is_backed_up_may_change(signed_in, clock):
    device = Authenticator(flags=UP | UV | BE)
    made = register(signed_in, device).ok()
    assert (made["backup_eligible"], made["backed_up"]) == (True, False)
    for flags, backed_up in ((SYNCED, True), (UP | UV | BE, False)):
        log_in(signed_in.stranger(), device, flags=flags).ok()
        [shown] = signed_in.get("/auth/passkeys").ok()
        assert (shown["backup_eligible"], shown["backed_up"]) == (True, backed_up)


@pytest.mark.parametrize(("at_first", "later"), [(DEVICE_BOUND, SYNCED), (SYNCED, DEVICE_BOUND)])
def test_whether_it_can_be_backed_up_may_not(signed_in, at_first, later):
    device = Authenticator(flags=at_first)
    register(signed_in, device).ok()
    log_in(signed_in.stranger(), device, flags=later).fails(*REFUSED)
    log_in(signed_in.stranger(), device).ok()


def test_extensions_an_authenticator_adds_are_read_over(signed_in):
    device = Authenticator()
    register(signed_in, device, extensions={"credProtect": 3}).ok()
    log_in(signed_in.stranger(), device, extensions={"uvm": [[2, 4, 2]]}).ok()


def test_bytes_behind_the_authenticator_data_are_refused(signed_in, device, passkey):
    data = hashlib.sha256(b"localhost").digest() + bytes([SYNCED]) + bytes(4)
    log_in(signed_in.stranger(), device, raw_authenticator_data=data).ok()
    for malformed in (data + b"\0", data[:-1], data[:32], b""):
        answer = log_in(signed_in.stranger(), device, raw_authenticator_data=malformed)
        answer.fails(400, "bad_request")
    attested = data[:32] + bytes([SYNCED | AT]) + data[33:]
    answer = log_in(signed_in.stranger(), device, raw_authenticator_data=attested)
    answer.fails(400, "bad_request")
