"""Credentials that are none: a documented refusal, and the flow is used up."""

import json
import tracemalloc

import pytest
from fido2 import cbor
from fido2.webauthn import AuthenticationResponse, RegistrationResponse

from app.core import base64url
from app.passkeys import ceremony
from app.passkeys.errors import CredentialMalformed
from tests.support.passkeys import (
    Authenticator,
    b64,
    finish_login,
    finish_registration,
    register,
    start_login,
    start_registration,
    unb64,
)

MALFORMED = 400, "bad_request"
NO_BINARY = [..., None, 7, True, [], {}, "+/", "Zm9v=", "A", "AB", "Zm9v Zm9v", "Zm9v\n", "é"]
DEEP = "[" * 100_000 + "]" * 100_000

NO_CREDENTIAL = [
    {},
    {"id": "x"},
    {"response": {}},
    {"id": "AAAA", "rawId": "AAAA", "type": "public-key"},
    {"id": "AAAA", "rawId": "AAAA", "type": "public-key", "response": {}},
    {"id": "AAAA", "rawId": "AAAA", "type": "public-key", "response": []},
    {"id": None, "rawId": None, "type": None, "response": None},
]


@pytest.mark.parametrize("ceremony", ["login", "register"])
@pytest.mark.usefixtures("site")
def test_a_credential_that_is_no_object_is_malformed(signed_in, ceremony):
    path = f"/auth/passkeys/{ceremony}/finish"
    for credential in (None, [], "text", 7, True):
        answer = signed_in.post(path, {"flow_id": "x", "credential": credential})
        assert (answer.status, answer.code) == MALFORMED, credential
    signed_in.post(path, {"flow_id": "x"}).fails(*MALFORMED)
    signed_in.post(path, {"credential": {}}).fails(*MALFORMED)


@pytest.mark.usefixtures("site")
def test_an_object_that_is_no_credential_is_malformed(signed_in):
    for credential in NO_CREDENTIAL:
        started = start_registration(signed_in)
        answer = finish_registration(signed_in, started["flow_id"], credential)
        assert (answer.status, answer.code) == MALFORMED, credential
        started = start_login(signed_in)
        answer = finish_login(signed_in, started["flow_id"], credential)
        assert (answer.status, answer.code) == MALFORMED, credential


SHAPES = {
    "id of another": {"credential": {"id": "AAAA"}},
    "raw id of another": {"credential": {"rawId": "AAAA"}},
    "no id": {"credential": {"id": ...}},
    "no raw id": {"credential": {"rawId": ...}},
    "another type": {"credential": {"type": "password"}},
    "results that are no object": {"credential": {"clientExtensionResults": []}},
    "client data that is no JSON": {"raw_client_data": b"{"},
    "client data that is no object": {"raw_client_data": b"[]"},
    "client data that is no UTF-8": {"raw_client_data": b'{"type": "\xff"}'},
    "client data in UTF-16": {"raw_client_data": "{}".encode("utf-16")},
    "client data without end": {"raw_client_data": DEEP.encode()},
    "client data too deep": {"raw_client_data": DEEP[:1500].encode() + DEEP[-1500:].encode()},
    "a number for a type": {"client_data": {"type": 7}},
    "no type": {"client_data": {"type": ...}},
    "no challenge": {"client_data": {"challenge": ...}},
    "a list for an origin": {"client_data": {"origin": ["http://localhost"]}},
    "a challenge outside ASCII": {"client_data": {"challenge": "\ud800é"}},
    "a number for a challenge": {"client_data": {"challenge": 2**40}},
    "too long": {"client_data": {"padding": "x" * 5000}},
}


def test_another_shape_is_malformed_and_uses_the_flow_up(signed_in, device, passkey):
    for shape, changes in SHAPES.items():
        answer = register(signed_in, Authenticator(), **changes)
        assert (answer.status, answer.code) == MALFORMED, shape
        started = start_login(signed_in)
        proof = device.get(started["public_key"], **changes)
        answer = finish_login(signed_in, started["flow_id"], proof)
        assert (answer.status, answer.code) == MALFORMED, shape
        proof = device.get(started["public_key"])
        answer = finish_login(signed_in, started["flow_id"], proof)
        assert (answer.status, answer.code) == (401, "auth.token_invalid"), shape


@pytest.mark.parametrize("value", NO_BINARY)
def test_binary_values_are_base64url(device, value):
    """Without a service: what reads a credential touches nothing else."""
    options = {"challenge": "AAAA", "rp": {"id": "localhost"}, "user": {"id": "AAAA"}}
    made = device.create({"publicKey": options})
    proof = device.get({"publicKey": {"challenge": "AAAA"}})
    assert ceremony.read(RegistrationResponse, made).id == made["id"]
    assert ceremony.read(AuthenticationResponse, proof).id == proof["id"]
    for kind, whole, names in (
        (RegistrationResponse, made, ["clientDataJSON", "attestationObject"]),
        (AuthenticationResponse, proof, ["clientDataJSON", "authenticatorData", "signature"]),
    ):
        for name in names:
            response = {
                k: v for k, v in (whole["response"] | {name: value}).items() if v is not ...
            }
            with pytest.raises(CredentialMalformed):
                ceremony.read(kind, whole | {"response": response})
        with pytest.raises(CredentialMalformed):
            ceremony.read(kind, whole | {"id": value, "rawId": value})
    if value is not ... and value is not None:
        response = proof["response"] | {"userHandle": value}
        with pytest.raises(CredentialMalformed):
            ceremony.read(AuthenticationResponse, proof | {"response": response})


def test_bytes_have_one_spelling():
    for raw in (b"", b"\0", b"\xff" * 5, bytes(range(256))):
        assert base64url.decoded(base64url.encoded(raw)) == raw == unb64(base64url.encoded(raw))
    for other in ("AB", "AAB", "A", "AAAA=", "AA==", "+A", "/A", " AA", "AA\n", "\uff21\uff21"):
        with pytest.raises(ValueError, match="not"):
            base64url.decoded(other)


OBJECTS = {
    "nothing": b"",
    "no CBOR": b"\xff",
    "no map": cbor.encode([1]),
    "a map without anything": cbor.encode({}),
    "a format that is no text": cbor.encode({"fmt": 1, "attStmt": {}, "authData": bytes(164)}),
    "more than one value": cbor.encode({}) + b"\0",
    "a list for a key": b"\xa1\x80\x00",
    "a map for a key": b"\xa1\xa0\x00",
    "a list of 2**64 - 1 values": b"\x9b" + b"\xff" * 8,
    "a text of 2**64 - 1 bytes": b"\x7b" + b"\xff" * 8,
    "a text that is no UTF-8": b"\x61\xff",
    "a list without end": b"\x9f\x00\xff",
    "a tag": b"\xc0\x00",
    "a half number": b"\xf9\x3c\x00",
    "lists in lists": b"\x81" * 12_000 + b"\x00",
    "a long list": b"\x99\x2e\xe0" + b"\x00" * 12_000,
    "authenticator data that is a text": cbor.encode({"fmt": "", "attStmt": {}, "authData": "x"}),
    "authenticator data that is a number": cbor.encode({"fmt": "", "attStmt": {}, "authData": 99}),
    "authenticator data in a list": cbor.encode({"fmt": "", "attStmt": {}, "authData": [0] * 37}),
    "no authenticator data": cbor.encode({"fmt": "", "attStmt": {}}),
    "no statement": cbor.encode({"fmt": "", "authData": bytes(37)}),
    "no format": cbor.encode({"attStmt": {}, "authData": bytes(37)}),
    "authenticator data cut off": cbor.encode({"fmt": "", "attStmt": {}, "authData": b"x" * 36}),
    "too long": cbor.encode({"fmt": "none", "attStmt": {}, "authData": b"x" * 17_000}),
}


@pytest.mark.usefixtures("site")
def test_an_attestation_that_cannot_be_read_is_malformed(signed_in):
    for kind, attestation in OBJECTS.items():
        changes = {"response": {"attestationObject": b64(attestation)}}
        answer = register(signed_in, Authenticator(), **changes)
        assert (answer.status, answer.code) == MALFORMED, kind


@pytest.mark.parametrize("number", [2**26, 2**40])
def test_a_number_for_authenticator_data_takes_no_memory(device, number):
    """The library would make as many bytes of it."""
    options = {"challenge": "AAAA", "rp": {"id": "localhost"}, "user": {"id": "AAAA"}}
    raw = cbor.encode({"fmt": "none", "attStmt": {}, "authData": number})
    made = device.create({"publicKey": options}, raw_attestation=raw)
    tracemalloc.start()
    try:
        with pytest.raises(CredentialMalformed):
            ceremony.read(RegistrationResponse, made)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.usefixtures("site")
def test_authenticator_data_of_more_than_4_kb_is_malformed(signed_in):
    for size, refusal in ((3500, (401, "auth.credentials_failed")), (4100, MALFORMED)):
        key = {1: 2, 3: -7, -1: bytes(size)}
        register(signed_in, Authenticator(), cose=key).fails(*refusal)


@pytest.mark.usefixtures("site")
def test_transports_are_a_list_of_texts(signed_in):
    for transports in ({}, "usb", 7, ["usb", 7], [None], [["usb"]], True):
        answer = register(signed_in, Authenticator(), response={"transports": transports})
        assert (answer.status, answer.code) == MALFORMED, transports


@pytest.mark.usefixtures("site")
def test_extension_results_are_an_object(signed_in):
    for results in ([], "x", 7):
        changes = {"credential": {"clientExtensionResults": results}}
        answer = register(signed_in, Authenticator(), **changes)
        assert (answer.status, answer.code) == MALFORMED, results


@pytest.mark.usefixtures("site")
def test_a_body_that_is_too_large_is_refused_before_anything(signed_in):
    body = {"flow_id": "x", "credential": {"id": "x" * 1024 * 1024}}
    signed_in.post("/auth/passkeys/login/finish", body).fails(413, "file.too_large")


@pytest.mark.usefixtures("site")
def test_deep_json_is_refused(signed_in):
    body = json.dumps({"flow_id": "x", "credential": "@@"}).replace('"@@"', DEEP)
    answer = signed_in.post("/auth/passkeys/login/finish", body.encode())
    answer.fails(*MALFORMED)
