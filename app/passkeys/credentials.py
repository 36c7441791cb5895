"""Reads a browser's WebAuthn JSON: its shape and its encodings, not whether any of it is true.

Whatever cannot be read is CredentialMalformed. Nothing is read that is larger than any
authenticator makes, since CBOR takes time that grows with the square of its length.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from fido2 import cbor
from fido2.webauthn import AuthenticatorData

from app.core import base64url
from app.passkeys.errors import CredentialMalformed

T = TypeVar("T")

TYPE = "public-key"
MAX_BYTES = 4 * 1024
# With a chain of certificates it takes about 6 kB.
MAX_ATTESTATION_BYTES = 16 * 1024
MAX_TRANSPORTS = 16
_TRANSPORT = re.compile(r"[a-z][a-z0-9-]{0,31}")


@dataclass(frozen=True)
class ClientData:
    """What the browser says about the ceremony; `raw` is what was signed."""

    raw: bytes
    type: str
    challenge: str
    origin: str
    is_embedded: bool


@dataclass(frozen=True)
class Attestation:
    """A new credential.

    `statement` is that of the attestation `format`, of any type. `transports` is None when the
    client told none. `is_discoverable` is None when the client does not know.
    """

    credential_id: str
    client_data: ClientData
    authenticator_data: AuthenticatorData
    format: str
    statement: Any
    transports: list[str] | None
    is_discoverable: bool | None


@dataclass(frozen=True)
class Assertion:
    """A proof of possession. `user_handle` is base64url; None when there is none."""

    credential_id: str
    client_data: ClientData
    authenticator_data: AuthenticatorData
    signature: bytes
    user_handle: str | None


def attestation(credential: Mapping[str, Any]) -> Attestation:
    """Read what `navigator.credentials.create` returned.

    Raises: CredentialMalformed.
    """
    response = _object(credential, "response")
    results = _object(credential, "clientExtensionResults", is_needed=False)
    properties = _object(results, "credProps", is_needed=False)
    made = _attestation_object(response)
    return Attestation(
        credential_id=_credential_id(credential),
        client_data=_client_data(response),
        authenticator_data=_authenticator_data(made.get("authData")),
        format=made["fmt"],
        statement=made["attStmt"],
        transports=_transports(response.get("transports")),
        is_discoverable=_optional(properties.get("rk"), bool),
    )


def assertion(credential: Mapping[str, Any]) -> Assertion:
    """Read what `navigator.credentials.get` returned.

    Raises: CredentialMalformed.
    """
    response = _object(credential, "response")
    _object(credential, "clientExtensionResults", is_needed=False)
    handle = response.get("userHandle")
    return Assertion(
        credential_id=_credential_id(credential),
        client_data=_client_data(response),
        authenticator_data=_authenticator_data(_binary(response, "authenticatorData")),
        signature=_binary(response, "signature"),
        user_handle=handle if handle is None else base64url.encoded(_decoded(handle)),
    )


def _credential_id(credential: Mapping[str, Any]) -> str:
    """Return the id, which is written twice, in its one spelling."""
    written = credential.get("rawId")
    if credential.get("id") != written or credential.get("type") != TYPE:
        raise CredentialMalformed
    return base64url.encoded(_decoded(written))


def _client_data(response: Mapping[str, Any]) -> ClientData:
    raw = _binary(response, "clientDataJSON")
    data = _parsed(_json, raw)
    if not isinstance(data, dict):
        raise CredentialMalformed
    kind, challenge, origin = (data.get(name) for name in ("type", "challenge", "origin"))
    if not isinstance(kind, str) or not isinstance(challenge, str) or not isinstance(origin, str):
        raise CredentialMalformed
    # A page of another site had this one in a frame (WebAuthn §13.4.2).
    is_embedded = bool(_optional(data.get("crossOrigin"), bool)) or "topOrigin" in data
    return ClientData(raw, kind, challenge, origin, is_embedded)


def _json(raw: bytes) -> Any:
    return json.loads(raw.decode("utf-8-sig"))


def _transports(told: Any) -> list[str] | None:
    """Return the transports worth keeping; what they mean is the client's business."""
    if told is None:
        return None
    if not isinstance(told, list) or not all(isinstance(name, str) for name in told):
        raise CredentialMalformed
    return list(dict.fromkeys(filter(_TRANSPORT.fullmatch, told)))[:MAX_TRANSPORTS]


def _object(parent: Mapping[str, Any], name: str, *, is_needed: bool = True) -> Mapping[str, Any]:
    value = parent.get(name)
    if value is None and not is_needed:
        return {}
    if not isinstance(value, dict):
        raise CredentialMalformed
    return value


def _attestation_object(response: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the members of an attestation object, of which only the format's type is checked."""
    raw = _decoded(response.get("attestationObject"), MAX_ATTESTATION_BYTES)
    made = _parsed(cbor.decode, raw)
    if not isinstance(made, dict) or not isinstance(made.get("fmt"), str) or "attStmt" not in made:
        raise CredentialMalformed
    return made


def _authenticator_data(raw: Any) -> AuthenticatorData:
    # The library takes a number for that many zeros, and makes them.
    if not isinstance(raw, bytes) or len(raw) > MAX_BYTES:
        raise CredentialMalformed
    data: AuthenticatorData = _parsed(AuthenticatorData, raw)
    return data


def _binary(parent: Mapping[str, Any], name: str) -> bytes:
    return _decoded(parent.get(name))


def _decoded(text: Any, most: int = MAX_BYTES) -> bytes:
    if not isinstance(text, str) or len(text) > most * 4 // 3:
        raise CredentialMalformed
    raw: bytes = _parsed(base64url.decoded, text)
    return raw


def _optional(value: Any, kind: type[T]) -> T | None:
    if value is not None and not isinstance(value, kind):
        raise CredentialMalformed
    return value


def _parsed(parse: Any, raw: Any) -> Any:
    try:
        return parse(raw)
    # The library's parsers let through whatever Python raises: KeyError, IndexError, struct.error,
    # RecursionError and more.
    except Exception:
        raise CredentialMalformed from None
