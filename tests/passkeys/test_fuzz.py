"""Hundreds of broken credentials, 10,000 in the long form: each is refused, or harmless.

Recordings of both ceremonies are changed at random, on the wire and inside their encodings, with a
seed that never changes. A part goes through HTTP, the rest straight to what reads and verifies it.
"""

import copy
import json
import random
from collections import Counter
from typing import Any

import pytest
from fido2 import cbor
from fido2.server import Fido2Server
from fido2.webauthn import (
    AuthenticationResponse,
    PublicKeyCredentialRpEntity,
    RegistrationResponse,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from app.passkeys import ceremony, relying_party
from app.passkeys.errors import CredentialMalformed, PasskeyRefused
from app.passkeys.models import Passkey
from app.passkeys.relying_party import CeremonyPurpose
from app.sessions import service as sessions
from tests.support.passkeys import RS256, Authenticator, b64, unb64
from tests.support.strategies import CHARACTERS

# How many of each ceremony.
THROUGH_HTTP = pytest.mark.parametrize("number", [40, pytest.param(200, marks=pytest.mark.soak)])
DIRECTLY = pytest.mark.parametrize("number", [1000, pytest.param(4800, marks=pytest.mark.soak)])
CHALLENGE = b64(b"c" * 32)
SITE = Fido2Server(
    PublicKeyCredentialRpEntity(id="localhost", name="Gatehouse"),
    verify_origin=lambda origin: origin == "http://localhost",
)
CREATION = {
    "publicKey": {
        "challenge": CHALLENGE,
        "rp": {"id": "localhost"},
        "user": {"id": b64(b"h" * 16)},
    }
}
REQUEST = {"publicKey": {"challenge": CHALLENGE}}
ODD: list[Any] = [
    None,
    True,
    0,
    -1,
    2**63,
    1.5,
    "",
    "AAAA",
    "é\0\ud800",
    "x" * 3000,
    [],
    [[]],
    {},
    {"a": {}},
    ["usb", None],
]
ODD_CBOR: list[Any] = [
    0,
    -8,
    2**64 - 1,
    "",
    "none",
    "packed",
    b"",
    b"\0" * 32,
    [],
    {},
    {1: 2},
    True,
]


class Mutator:
    """Changes recordings; the same each time."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def changed(self, recording: dict[str, Any]) -> dict[str, Any]:
        """Return a recording with one change or several."""
        credential = copy.deepcopy(recording)
        for _ in range(self._random.choice((1, 1, 1, 2, 4))):
            change = self._random.choice((self._wire, self._bytes, self._bytes, self._inside))
            change(credential)
        return credential

    def _wire(self, credential: dict[str, Any]) -> None:
        """Replace, remove or add a member of the JSON."""
        self._change_node(credential, ODD)

    def _bytes(self, credential: dict[str, Any]) -> None:
        """Change the bytes of a binary value."""
        response = credential.get("response")
        if not isinstance(response, dict) or not response:
            return
        name = self._random.choice(sorted(response))
        if isinstance(response[name], str):
            response[name] = b64(self._bent(_raw(response[name])))

    def _inside(self, credential: dict[str, Any]) -> None:
        """Change what a binary value encodes: the attestation's CBOR, the client data's JSON."""
        response = credential.get("response")
        if not isinstance(response, dict):
            return
        name = self._random.choice(("clientDataJSON", "attestationObject"))
        try:
            if name == "clientDataJSON":
                value = json.loads(_raw(response[name]))
                self._change_node(value, ODD)
                response[name] = b64(json.dumps(value).encode())
            else:
                value = cbor.decode(_raw(response[name]))
                self._change_node(value, ODD_CBOR)
                response[name] = b64(cbor.encode(value))
        except (KeyError, ValueError, TypeError, IndexError, OverflowError):
            return  # it is no such thing, or was broken before

    def _change_node(self, value: Any, replacements: list[Any]) -> None:
        while isinstance(value, dict) and value:
            name = self._random.choice(list(value))
            if isinstance(value[name], dict) and value[name] and self._random.random() < 0.7:
                value = value[name]
                continue
            kind = self._random.randrange(4)
            if kind == 0:
                del value[name]
            elif kind == 1:
                value["another"] = self._random.choice(replacements)
            elif kind == 2 and isinstance(value[name], bytes):
                value[name] = self._bent(value[name])
            else:
                value[name] = self._random.choice(replacements)
            return

    def _bent(self, raw: bytes) -> bytes:
        at = self._random.randrange(len(raw) + 1)
        some = self._random.randbytes(self._random.choice((1, 2, 8, 300)))
        kind = self._random.randrange(6)
        if kind <= 1 and raw:
            bit = 1 << self._random.randrange(8)
            at %= len(raw)
            return raw[:at] + bytes([raw[at] ^ bit]) + raw[at + 1 :]
        if kind == 2:
            return raw[:at]
        if kind == 3:
            return raw[:at] + some + raw[at:]
        if kind == 4:
            return raw[:at] + some + raw[at + len(some) :]
        return raw[:at] + raw[at + len(some) :]


def _raw(text: Any) -> bytes:
    try:
        return unb64(text)
    except (ValueError, TypeError, AttributeError):
        return b""


def registrations() -> list[dict[str, Any]]:
    device, second = Authenticator(), Authenticator(alg=RS256)
    return [
        device.create(CREATION),
        device.create(CREATION, extensions={"credProtect": 3}),
        device.create(CREATION, fmt="packed"),
        device.create(CREATION, fmt="fido-u2f"),
        second.create(CREATION),
        second.create(CREATION, fmt="packed"),
    ]


# --- through HTTP ------------------------------------------------------------------------------


def opened(rt, purpose: CeremonyPurpose, **data: Any) -> str:
    """Open a flow with a challenge that is known beforehand, as its start would."""
    return relying_party.begin(rt, purpose, {"challenge": CHALLENGE, **data}, {}).flow_id


@THROUGH_HTTP
def test_broken_proofs_sign_nobody_in(rt, signed_in, device, passkey, number):
    stranger, mutator, seen = signed_in.stranger(), Mutator(1), Counter()
    held = device.passkeys[0]
    recordings = [device.get(REQUEST), device.get(REQUEST, extensions={"uvm": [[2, 4, 2]]})]
    for _ in range(number):
        credential = mutator.changed(mutator._random.choice(recordings))
        body = {
            "flow_id": opened(rt, CeremonyPurpose.LOGIN, identifier=""),
            "credential": credential,
        }
        answer = stranger.post("/auth/passkeys/login/finish", body)
        seen[answer.status] += 1
        if answer.status == 200:
            # Only what is not signed was changed: unknown members, extension results.
            assert credential["rawId"] == b64(held.id)
            assert credential["response"]["signature"] in {
                r["response"]["signature"] for r in recordings
            }
    assert set(seen) == {200, 400, 401}, seen
    assert min(seen[400], seen[401]) > number // 20, seen


@THROUGH_HTTP
@pytest.mark.usefixtures("site")
def test_broken_attestations_are_refused_or_harmless(rt, signed_in, number):
    mutator, seen = Mutator(2), Counter()
    account = sessions.authenticate(rt, signed_in.access_token).account
    options = signed_in.post("/auth/passkeys/register/start", {}).ok()["public_key"]
    bound = {
        "user_id": account.id,
        "session_version": account.session_version,
        "handle": options["publicKey"]["user"]["id"],
        "name": "Passkey",
        "newest_excluded": 0,
    }
    recordings = registrations()
    for _ in range(number):
        credential = mutator.changed(mutator._random.choice(recordings))
        body = {
            "flow_id": opened(rt, CeremonyPurpose.REGISTRATION, **bound),
            "credential": credential,
        }
        answer = signed_in.post("/auth/passkeys/register/finish", body)
        seen[answer.status] += 1
    assert set(seen) == {200, 400, 401}, seen
    assert min(seen[400], seen[401]) > number // 20, seen
    # What was accepted can be shown.
    assert len(signed_in.get("/auth/passkeys").ok()) == seen[200]


def registered(credential: dict[str, Any]) -> Passkey:
    """Read and verify a registration, and return what is stored of it."""
    made = ceremony.read(RegistrationResponse, credential)
    new = ceremony.verify_registration(SITE, CHALLENGE, made)
    is_eligible = made.response.attestation_object.auth_data.is_backup_eligible()
    key = cbor.encode(new.public_key)
    return Passkey(public_key=key, sign_count=0, backup_eligible=is_eligible)


# --- directly ----------------------------------------------------------------------------------


@DIRECTLY
def test_reading_and_verifying_proofs_raises_nothing_else(number):
    device, mutator, seen = Authenticator(), Mutator(3), Counter()
    known = registered(device.create(CREATION))
    recording = device.get(REQUEST)
    for _ in range(number):
        try:
            proof = ceremony.read(AuthenticationResponse, mutator.changed(recording))
            ceremony.verify_authentication(SITE, CHALLENGE, known, proof)
            seen["accepted"] += 1
        except (CredentialMalformed, PasskeyRefused) as refusal:
            seen[type(refusal).__name__] += 1
    assert len(seen) == 3, seen


@DIRECTLY
def test_reading_and_verifying_attestations_raises_nothing_else(number):
    mutator, seen, recordings = Mutator(4), Counter(), registrations()
    for _ in range(number):
        try:
            known = registered(mutator.changed(mutator._random.choice(recordings)))
            # A key that was accepted can verify.
            proof = ceremony.read(AuthenticationResponse, FOREIGN)
            with pytest.raises(PasskeyRefused):
                ceremony.verify_authentication(SITE, CHALLENGE, known, proof)
            seen["accepted"] += 1
        except (CredentialMalformed, PasskeyRefused) as refusal:
            seen[type(refusal).__name__] += 1
    assert len(seen) == 3, seen


def _foreign() -> dict[str, Any]:
    device = Authenticator()
    device.create(CREATION)
    return device.get(REQUEST)


FOREIGN = _foreign()

# CBOR that fido2 can write.
KEYS = (
    st.integers(-300, 300)
    | st.text(CHARACTERS, max_size=8)
    | st.sampled_from(["alg", "sig", "x5c", "ver"])
)
SCALARS = (
    st.booleans()
    | st.integers(-(2**64), 2**64 - 1)
    | st.text(CHARACTERS, max_size=20)
    | st.binary()
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=8,
)
FORMATS = st.sampled_from(["none", "packed", "fido-u2f", "tpm", "apple"])


@settings(max_examples=50)
@given(fmt=FORMATS | VALUES, statement=VALUES, cose=st.dictionaries(KEYS, VALUES, max_size=6))
def test_any_statement_and_any_key_are_refused(fmt, statement, cose):
    for key in (cose, None):
        device = Authenticator()
        made = device.create(CREATION, fmt=fmt, statement=statement, cose=key)
        try:
            registered(made)
        except (CredentialMalformed, PasskeyRefused):
            continue
        assert key is None
        assert isinstance(fmt, str)
        assert statement == {} or fmt != "none"


@settings(max_examples=50)
@given(st.binary(max_size=300))
def test_any_bytes_are_refused_as_an_attestation(raw):
    made = Authenticator().create(CREATION, response={"attestationObject": b64(raw)})
    with pytest.raises((CredentialMalformed, PasskeyRefused)):
        registered(made)
