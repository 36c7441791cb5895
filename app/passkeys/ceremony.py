"""Reads and verifies what a browser returns from a WebAuthn ceremony.

fido2's server takes the steps of both ceremonies; here are its input, which it must not be given
unseen, and the steps that it leaves out; see docs/decisions/0004-passkeys.md.

Invariant: every failed check raises the same PasskeyRefused, which does not reveal the step. Only
the log does.
"""

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from cryptography.exceptions import InvalidSignature
from fido2 import cbor
from fido2.attestation.base import Attestation
from fido2.cose import ES256, RS256, CoseKey
from fido2.server import Fido2Server
from fido2.webauthn import (
    Aaguid,
    AttestationObject,
    AttestedCredentialData,
    AuthenticationResponse,
    AuthenticatorData,
    CollectedClientData,
    PublicKeyCredentialDescriptor,
    RegistrationResponse,
    UserVerificationRequirement,
)

from app.core import base64url
from app.passkeys.errors import CredentialMalformed, PasskeyRefused
from app.passkeys.models import MAX_CREDENTIAL_ID_BYTES, Passkey

log = logging.getLogger(__name__)
# It would log the id of every credential that is used.
logging.getLogger("fido2").setLevel(logging.WARNING)

R = TypeVar("R", RegistrationResponse, AuthenticationResponse)

TYPE = "public-key"
# Authenticators make nothing larger, and decoding CBOR takes time quadratic in its length. With a
# certificate chain, an attestation object takes about 6 kB.
MAX_BYTES = 4 * 1024
BINARY = {
    "clientDataJSON": MAX_BYTES,
    "attestationObject": 16 * 1024,
    "authenticatorData": MAX_BYTES,
    "signature": MAX_BYTES,
    "userHandle": MAX_BYTES,
}
MAX_LOGGED_ORIGIN_LENGTH = 200

# COSE key parameter labels (RFC 9052 §7, RFC 8230 §4).
KTY, ALG, N, E = 1, 3, -1, -2
EC2, RSA = 2, 3
# The sizes authenticators generate; longer keys would make verification slow.
RSA_BITS = range(2048, 4097)
MAX_EXPONENT_BYTES = 4


def read(kind: type[R], credential: Mapping[str, Any]) -> R:
    """Parse what `navigator.credentials` returned.

    Raises: CredentialMalformed.
    """
    try:
        _check_types(credential)
        return kind.from_dict(credential)
    # The library lets through whatever Python raises on broken input: KeyError, TypeError,
    # struct.error, RecursionError and more.
    except Exception:
        raise CredentialMalformed from None


def descriptor(credential_id: str) -> PublicKeyCredentialDescriptor:
    """Return how a page names a known credential to the browser."""
    return PublicKeyCredentialDescriptor.from_dict({"type": TYPE, "id": credential_id})


def verify_registration(
    server: Fido2Server, challenge: str, made: RegistrationResponse
) -> AttestedCredentialData:
    """Verify a registration, and return the new credential.

    Raises: PasskeyRefused.
    """
    client_data, attested = made.response.client_data, made.response.attestation_object
    with _logged_refusal(client_data):
        data = server.register_complete(_state(challenge), made)
        _check_rest(client_data, data)
        credential = data.credential_data
        if credential is None or credential.credential_id != made.raw_id:
            raise ValueError("Browser and authenticator name two credentials.")
        if not 0 < len(made.raw_id) <= MAX_CREDENTIAL_ID_BYTES:
            raise ValueError("The credential's id is empty or too long.")
        _check_key(credential.public_key)
        _check_statement(attested, client_data.hash)
        return credential


def verify_authentication(
    server: Fido2Server, challenge: str, known: Passkey, proof: AuthenticationResponse
) -> AuthenticatorData:
    """Verify that a known passkey signed; return what its authenticator says about it now.

    Raises: PasskeyRefused.
    """
    client_data, data = proof.response.client_data, proof.response.authenticator_data
    key: Any = cbor.decode(known.public_key)
    credential = AttestedCredentialData.create(Aaguid.NONE, proof.raw_id, CoseKey.parse(key))
    with _logged_refusal(client_data):
        server.authenticate_complete(_state(challenge), [credential], proof)
        _check_rest(client_data, data)
        if data.is_backup_eligible() != known.backup_eligible:
            raise ValueError("Whether it can be backed up has changed.")
        # A counter that fails to advance may mean a cloned authenticator; both 0: it has none
        # (WebAuthn §6.1.1).
        if not (data.counter > known.sign_count or data.counter == known.sign_count == 0):
            raise ValueError("The signature count went back.")
    return data


def _check_types(credential: Mapping[str, Any]) -> None:
    """Refuse what the library would take for something else, or for very long.

    Given a number instead of text or bytes, it would allocate that many zero bytes.
    """
    response = credential["response"]
    texts = {name: response[name] for name in BINARY if response.get(name) is not None}
    raw = {name: _decoded(text, BINARY[name]) for name, text in texts.items()}
    _decoded(credential["id"], MAX_BYTES)
    said = json.loads(raw["clientDataJSON"])
    if not all(isinstance(said[name], str) for name in ("type", "challenge", "origin")):
        raise TypeError("client data must be text")
    if "attestationObject" in raw:
        made: Any = cbor.decode(raw["attestationObject"])
        if not isinstance(made["authData"], bytes) or len(made["authData"]) > MAX_BYTES:
            raise TypeError("authenticator data must be bytes")
        if not isinstance(made["fmt"], str):
            raise TypeError("a format must be text")
    if credential["type"] != TYPE:
        raise ValueError("must be a public key")


def _decoded(text: Any, most: int) -> bytes:
    if not isinstance(text, str) or len(text) > most * 4 // 3:
        raise TypeError("must be a short text")
    return base64url.decoded(text)


def _state(challenge: str) -> dict[str, str]:
    """Return what the library's server would have kept of the beginning of a ceremony."""
    return {"challenge": challenge, "user_verification": UserVerificationRequirement.REQUIRED}


def _check_rest(client_data: CollectedClientData, data: AuthenticatorData) -> None:
    """Check what the library's server leaves out of both ceremonies."""
    said = json.loads(client_data)
    if said.get("crossOrigin") or "topOrigin" in said:
        raise ValueError("The page was in a frame of another site.")  # WebAuthn §13.4.2
    if data.is_backed_up() and not data.is_backup_eligible():
        raise ValueError("It is backed up although it cannot be.")


def _check_statement(attested: AttestationObject, client_data_hash: bytes) -> None:
    """Check what browsers leave of an attestation that was not asked for (WebAuthn §5.1.3).

    That is nothing, or a signature by the new key itself. Of clients that leave more, the rest is
    not read: nobody else's word for an authenticator is trusted.
    """
    kind, statement = attested.fmt, attested.att_stmt
    try:
        if kind == "none" or (kind == "packed" and "x5c" not in statement):
            Attestation.for_type(kind)().verify(statement, attested.auth_data, client_data_hash)
    except Exception as error:  # on malformed input, whatever Python raises
        raise ValueError(f"Invalid attestation ({type(error).__name__}).") from None


def _check_key(key: CoseKey) -> None:
    """Refuse a public key that was not offered, is none, or would take long to verify."""
    try:
        if is_accepted := _is_offered(key):
            with suppress(InvalidSignature):  # but no other error: the numbers are those of a key
                key.verify(b"", b"")
    except Exception:  # on malformed input, whatever Python raises
        is_accepted = False
    if not is_accepted:
        raise ValueError("The public key is not of an accepted kind.")


def _is_offered(key: CoseKey) -> bool:
    if (key[KTY], key[ALG]) == (RSA, RS256.ALGORITHM):
        bits = int.from_bytes(key[N]).bit_length()
        return bits in RSA_BITS and len(key[E]) <= MAX_EXPONENT_BYTES
    return (key[KTY], key[ALG]) == (EC2, ES256.ALGORITHM)


@contextmanager
def _logged_refusal(client_data: CollectedClientData) -> Iterator[None]:
    """Turn a failed check into a refusal; the log tells the operator why, without secrets."""
    try:
        yield
    except (ValueError, AssertionError) as error:
        origin = ascii(client_data.origin[:MAX_LOGGED_ORIGIN_LENGTH])
        log.info("a passkey was refused at %s: %s", origin, error or "no credential")
        raise PasskeyRefused from None
