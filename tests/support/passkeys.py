"""A software authenticator and browser: passkeys in WebAuthn's JSON, with any field altered.

It follows WebAuthn and CTAP2 unless told otherwise, and knows nothing about the service.
"""

import base64
import hashlib
import json
import os
import struct
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from fido2 import cbor

from tests.support.api import ORIGIN, Answer, ApiClient

UP, UV, BE, BS, AT, ED = 0x01, 0x04, 0x08, 0x10, 0x40, 0x80
SYNCED = UP | UV | BE | BS
DEVICE_BOUND = UP | UV
ES256, EDDSA, RS256 = -7, -8, -257

Json = dict[str, Any]
_RSA_KEYS: dict[int, rsa.RSAPrivateKey] = {}


def b64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def unb64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def rsa_key(bits: int = 2048) -> rsa.RSAPrivateKey:
    """Return a key, cached by size because generating one is slow."""
    if bits not in _RSA_KEYS:
        _RSA_KEYS[bits] = rsa.generate_private_key(65537, bits)
    return _RSA_KEYS[bits]


@dataclass
class Key:
    """A key pair of one algorithm."""

    alg: int
    private: Any

    @classmethod
    def new(cls, alg: int) -> "Key":
        make: dict[int, Callable[[], Any]] = {
            ES256: lambda: ec.generate_private_key(ec.SECP256R1()),
            EDDSA: ed25519.Ed25519PrivateKey.generate,
            RS256: rsa_key,
        }
        return cls(alg, make[alg]())

    def cose(self) -> dict[int, Any]:
        """Return the public key as a COSE key (RFC 9053, RFC 8230)."""
        public = self.private.public_key()
        if self.alg == ES256:
            numbers = public.public_numbers()
            x, y = (value.to_bytes(32, "big") for value in (numbers.x, numbers.y))
            return {1: 2, 3: ES256, -1: 1, -2: x, -3: y}
        if self.alg == RS256:
            numbers = public.public_numbers()
            n, e = (v.to_bytes((v.bit_length() + 7) // 8, "big") for v in (numbers.n, numbers.e))
            return {1: 3, 3: RS256, -1: n, -2: e}
        raw = public.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
        return {1: 1, 3: EDDSA, -1: 6, -2: raw}

    def sign(self, message: bytes) -> bytes:
        scheme: tuple[Any, ...] = ()
        if self.alg == ES256:
            scheme = (ec.ECDSA(hashes.SHA256()),)
        elif self.alg == RS256:
            scheme = (padding.PKCS1v15(), hashes.SHA256())
        return cast("bytes", self.private.sign(message, *scheme))


@dataclass
class Passkey:
    """A credential that an authenticator holds."""

    id: bytes
    key: Key
    rp_id: str
    user_handle: str
    count: int


@dataclass
class Overrides:
    """Deviations from a correct ceremony; None keeps the correct value.

    `client_data` and `response` are merged into the browser's, `credential` into the whole result;
    a value of `...` removes a member. `rp_id` is the one the authenticator signs for.
    """

    type: str | None = None
    challenge: str | None = None
    origin: str | None = None
    client_data: Json = field(default_factory=dict)
    raw_client_data: bytes | None = None
    rp_id: str | None = None
    flags: int | None = None
    count: int | None = None
    extensions: Any = None
    cose: dict[int, Any] | None = None
    credential_id: bytes | None = None
    raw_authenticator_data: bytes | None = None
    sign: Callable[[bytes], bytes] | None = None
    user_handle: Any = None
    response: Json = field(default_factory=dict)
    credential: Json = field(default_factory=dict)
    fmt: str = "none"
    statement: Any = None
    raw_attestation: bytes | None = None


class Authenticator:
    """Holds passkeys; sets `flags` in its answers, and counts signatures if `counts`."""

    def __init__(
        self, origin: str = ORIGIN, *, flags: int = SYNCED, alg: int = ES256, counts: bool = False
    ) -> None:
        self.origin, self.flags, self.alg, self.counts = origin, flags, alg, counts
        self.passkeys: list[Passkey] = []

    def create(self, public_key: Json, **changes: Any) -> Json:
        """Answer `navigator.credentials.create(public_key)`."""
        overrides, options = Overrides(**changes), public_key["publicKey"]
        passkey = Passkey(
            id=os.urandom(32) if overrides.credential_id is None else overrides.credential_id,
            key=Key.new(self.alg),
            rp_id=options["rp"]["id"],
            user_handle=options["user"]["id"],
            count=1 if self.counts else 0,
        )
        self.passkeys.append(passkey)
        client_data = self._client_data("webauthn.create", options["challenge"], overrides)
        attested = bytes(16) + struct.pack(">H", len(passkey.id)) + passkey.id
        attested += cbor.encode(passkey.key.cose() if overrides.cose is None else overrides.cose)
        data = self._data(passkey, overrides, AT, attested)
        statement = self._statement(passkey, overrides, data, client_data)
        made = cbor.encode({"fmt": overrides.fmt, "attStmt": statement, "authData": data})
        response = {
            "clientDataJSON": b64(client_data),
            "attestationObject": b64(overrides.raw_attestation or made),
            "transports": ["internal", "hybrid"],
        }
        return _credential(passkey.id, response, {"credProps": {"rk": True}}, overrides)

    def get(self, public_key: Json, passkey: Passkey | None = None, **changes: Any) -> Json:
        """Answer `navigator.credentials.get(public_key)` with the newest passkey, or another."""
        overrides, options = Overrides(**changes), public_key["publicKey"]
        passkey = passkey or self.passkeys[-1]
        if self.counts:
            passkey.count += 1
        client_data = self._client_data("webauthn.get", options["challenge"], overrides)
        data = self._data(passkey, overrides, 0, b"")
        signed = data + hashlib.sha256(client_data).digest()
        response = {
            "clientDataJSON": b64(client_data),
            "authenticatorData": b64(data),
            "signature": b64((overrides.sign or passkey.key.sign)(signed)),
            "userHandle": passkey.user_handle
            if overrides.user_handle is None
            else overrides.user_handle,
        }
        return _credential(passkey.id, response, {}, overrides)

    def _client_data(self, kind: str, challenge: str, overrides: Overrides) -> bytes:
        if overrides.raw_client_data is not None:
            return overrides.raw_client_data
        said = {
            "type": overrides.type or kind,
            "challenge": challenge if overrides.challenge is None else overrides.challenge,
            "origin": overrides.origin or self.origin,
            "crossOrigin": False,
        }
        return json.dumps(_merged(said, overrides.client_data), separators=(",", ":")).encode()

    def _data(
        self, passkey: Passkey, overrides: Overrides, more_flags: int, attested: bytes
    ) -> bytes:
        if overrides.raw_authenticator_data is not None:
            return overrides.raw_authenticator_data
        flags = (self.flags if overrides.flags is None else overrides.flags) | more_flags
        extensions = b"" if overrides.extensions is None else cbor.encode(overrides.extensions)
        count = passkey.count if overrides.count is None else overrides.count
        rp_id = passkey.rp_id if overrides.rp_id is None else overrides.rp_id
        head = hashlib.sha256(rp_id.encode()).digest()
        flags |= ED if extensions else 0
        return head + struct.pack(">BI", flags, count) + attested + extensions

    def _statement(
        self, passkey: Passkey, overrides: Overrides, data: bytes, client_data: bytes
    ) -> Any:
        if overrides.statement is not None:
            return overrides.statement
        digest = hashlib.sha256(client_data).digest()
        sign = overrides.sign or passkey.key.sign
        if overrides.fmt == "packed":
            return {"alg": passkey.key.alg, "sig": sign(data + digest)}
        if overrides.fmt == "fido-u2f":
            return _u2f_statement(passkey, digest, overrides.sign)
        return {}


def _u2f_statement(passkey: Passkey, digest: bytes, sign: Callable[[bytes], bytes] | None) -> Json:
    """Return a U2F token's attestation statement (WebAuthn §8.6), its certificate self-signed."""
    maker = Key.new(ES256)
    cose = passkey.key.cose()
    point = b"\x04" + cose[-2] + cose[-3]
    rp_id_hash = hashlib.sha256(passkey.rp_id.encode()).digest()
    signed = b"\0" + rp_id_hash + digest + passkey.id + point
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "U2F token")])
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    certificate = (
        x509.CertificateBuilder(name, name, maker.private.public_key(), 1)
        .not_valid_before(begin)
        .not_valid_after(begin + timedelta(days=3650))
        .sign(maker.private, hashes.SHA256())
    )
    der = certificate.public_bytes(serialization.Encoding.DER)
    return {"x5c": [der], "sig": (sign or maker.sign)(signed)}


def _credential(credential_id: bytes, response: Json, results: Json, overrides: Overrides) -> Json:
    whole = {
        "id": b64(credential_id),
        "rawId": b64(credential_id),
        "type": "public-key",
        "authenticatorAttachment": "platform",
        "clientExtensionResults": results,
        "response": _merged(response, overrides.response),
    }
    return _merged(whole, overrides.credential)


def _merged(right: Json, overrides: Json) -> Json:
    merged = deepcopy(right) | overrides
    return {name: value for name, value in merged.items() if value is not ...}


# --- what a page does --------------------------------------------------------------------------

# Names that no passkey may have, with the error code.
BAD_NAMES = [
    ("x" * 129, "passkey.name_too_long"),
    ("😀" * 129, "passkey.name_too_long"),
    ("x" * 100_000, "passkey.name_too_long"),
    ("x" * 128 + "\x07x", "passkey.name_too_long"),
    ("a\x07b", "passkey.name_invalid"),
    ("a\nb", "passkey.name_invalid"),
    ("\0", "passkey.name_invalid"),
    ("a\x7f", "passkey.name_invalid"),
    ("a\x9fb", "passkey.name_invalid"),
    ("\ud800", "passkey.name_invalid"),
]


def start_registration(client: ApiClient, **body: Any) -> Json:
    """Start a registration; return flow id and options."""
    return cast("Json", client.post("/auth/passkeys/register/start", body).ok())


def finish_registration(client: ApiClient, flow_id: str, credential: Any, **body: Any) -> Answer:
    """Finish a registration with an authenticator's credential."""
    sent = {"flow_id": flow_id, "credential": credential} | body
    return client.post("/auth/passkeys/register/finish", sent)


def register(client: ApiClient, device: Authenticator, **changes: Any) -> Answer:
    """Register a passkey of a device for the account a client is signed in to."""
    started = start_registration(client)
    made = device.create(started["public_key"], **changes)
    return finish_registration(client, started["flow_id"], made)


def list_passkeys(client: ApiClient) -> list[Json]:
    """Return the passkeys of the account a client is signed in to."""
    return cast("list[Json]", client.get("/auth/passkeys").ok())


def start_login(client: ApiClient, **body: Any) -> Json:
    """Start a sign-in; return flow id and options."""
    return cast("Json", client.post("/auth/passkeys/login/start", body).ok())


def finish_login(client: ApiClient, flow_id: str, credential: Any) -> Answer:
    """Finish a sign-in with an authenticator's assertion."""
    sent = {"flow_id": flow_id, "credential": credential}
    return client.post("/auth/passkeys/login/finish", sent)


def log_in(
    client: ApiClient, device: Authenticator, passkey: Passkey | None = None, **changes: Any
) -> Answer:
    """Sign in with a passkey of a device."""
    started = start_login(client)
    return finish_login(
        client, started["flow_id"], device.get(started["public_key"], passkey, **changes)
    )
