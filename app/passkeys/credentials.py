"""Parses a browser's WebAuthn JSON: shape and encodings only; nothing is verified here.

Anything that cannot be parsed raises CredentialMalformed. Nothing larger than authenticators
produce is parsed, since decoding CBOR takes time quadratic in its length.
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
# With a certificate chain, an attestation object takes about 6 kB.
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

    `statement` is the attestation statement, of a type that depends on `format`. `transports` is
    None if the client reported none, `is_discoverable` None if the client does not know.
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
    """A proof of possession. `user_handle` is base64url, or None if the client sent none."""

    credential_id: str
    client_data: ClientData
    authenticator_data: AuthenticatorData
    signature: bytes
    user_handle: str | None


def attestation(credential: Mapping[str, Any]) -> Attestation:
    """Parse what `navigator.credentials.create` returned.

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
    """Parse what `navigator.credentials.get` returned.

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
    """Return the canonical form of the id, which is sent twice, as `id` and `rawId`."""
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
    # The page was embedded in a frame of another site (WebAuthn §13.4.2).
    is_embedded = bool(_optional(data.get("crossOrigin"), bool)) or "topOrigin" in data
    return ClientData(raw, kind, challenge, origin, is_embedded)


def _json(raw: bytes) -> Any:
    return json.loads(raw.decode("utf-8-sig"))


def _transports(told: Any) -> list[str] | None:
    """Return the well-formed transports, deduplicated; only clients interpret them."""
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
    """Return a decoded attestation object; of its members, only the type of `fmt` is checked."""
    raw = _decoded(response.get("attestationObject"), MAX_ATTESTATION_BYTES)
    made = _parsed(cbor.decode, raw)
    if not isinstance(made, dict) or not isinstance(made.get("fmt"), str) or "attStmt" not in made:
        raise CredentialMalformed
    return made


def _authenticator_data(raw: Any) -> AuthenticatorData:
    # Given an integer, the library would allocate that many zero bytes.
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
