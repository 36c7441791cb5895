"""Verifies WebAuthn ceremonies: registration (§7.1 of Level 3) and authentication (§7.2).

The fido2 library parses authenticator data, keys and attestation. The steps are implemented here,
because its server omits some of them and spends more time on the rest than on the signature;
docs/decisions/0004-passkeys.md lists them one by one.

Invariant: every failed check raises the same PasskeyRefused, which does not reveal the step. Only
the log does.
"""

import hashlib
import hmac
import logging
from dataclasses import dataclass

from fido2.attestation.apple import AppleAttestation
from fido2.attestation.base import NoneAttestation
from fido2.attestation.packed import PackedAttestation
from fido2.attestation.tpm import TpmAttestation
from fido2.attestation.u2f import FidoU2FAttestation
from fido2.webauthn import AuthenticatorData

from app.core import base64url
from app.passkeys import public_keys
from app.passkeys.credentials import Assertion, Attestation, ClientData
from app.passkeys.errors import PasskeyRefused
from app.passkeys.models import MAX_CREDENTIAL_ID_BYTES
from app.passkeys.relying_party import RelyingParty

log = logging.getLogger(__name__)

MAX_LOGGED_ORIGIN_LENGTH = 200
CREATE, GET = "webauthn.create", "webauthn.get"
# The options ask for no attestation, but not every client strips what an authenticator added
# (§5.4.7).
FORMATS = {
    form.FORMAT: form()
    for form in (
        NoneAttestation,
        PackedAttestation,
        FidoU2FAttestation,
        TpmAttestation,
        AppleAttestation,
    )
}


@dataclass(frozen=True)
class NewCredential:
    """What a registration proves."""

    credential_id: str
    public_key: bytes
    sign_count: int
    backup_eligible: bool
    backed_up: bool


@dataclass(frozen=True)
class StoredCredential:
    """The stored state of a credential that signs in."""

    public_key: bytes
    sign_count: int
    backup_eligible: bool


@dataclass(frozen=True)
class CredentialUpdate:
    """What an authentication changes in its stored credential."""

    sign_count: int
    backed_up: bool


def verify_registration(site: RelyingParty, challenge: str, new: Attestation) -> NewCredential:
    """Verify a registration.

    Raises: PasskeyRefused.
    """
    _check_client_data(site, new.client_data, CREATE, challenge)
    data = new.authenticator_data
    _check_authenticator_data(site, data)
    credential = data.credential_data
    if credential is None:
        raise _log_refusal("there is no new credential")
    length = len(credential.credential_id)
    _require(0 < length <= MAX_CREDENTIAL_ID_BYTES, "the credential's id is empty or too long")
    is_same = base64url.encoded(credential.credential_id) == new.credential_id
    _require(is_same, "browser and authenticator tell two ids")
    public_key = public_keys.encode(credential.public_key)
    if public_key is None:
        raise _log_refusal("the public key is none that may sign in")
    _check_attestation(new)
    return NewCredential(
        credential_id=new.credential_id,
        public_key=public_key,
        sign_count=data.counter,
        backup_eligible=data.is_backup_eligible(),
        backed_up=data.is_backed_up(),
    )


def verify_authentication(
    site: RelyingParty, challenge: str, known: StoredCredential, proof: Assertion
) -> CredentialUpdate:
    """Verify an authentication.

    Raises: PasskeyRefused.
    """
    _check_client_data(site, proof.client_data, GET, challenge)
    data = proof.authenticator_data
    _check_authenticator_data(site, data)
    is_as_known = data.is_backup_eligible() == known.backup_eligible
    _require(is_as_known, "whether it can be backed up has changed")
    signed = bytes(data) + hashlib.sha256(proof.client_data.raw).digest()
    is_signed = public_keys.has_signed(known.public_key, signed, proof.signature)
    _require(is_signed, "the signature is not that of the passkey")
    # A counter that fails to advance may mean a cloned authenticator; both 0: it has none (§6.1.1).
    counts_on = data.counter > known.sign_count or data.counter == known.sign_count == 0
    _require(counts_on, "the count of signatures went back")
    return CredentialUpdate(sign_count=data.counter, backed_up=data.is_backed_up())


def _check_client_data(site: RelyingParty, data: ClientData, kind: str, challenge: str) -> None:
    _require(data.type == kind, "it is of another ceremony")
    answered = data.challenge.encode("utf-8", "replace")
    _require(hmac.compare_digest(answered, challenge.encode()), "it answers another challenge")
    if data.origin not in site.origins:
        told = ascii(data.origin[:MAX_LOGGED_ORIGIN_LENGTH])
        raise _log_refusal(f"the page's origin {told} is not in public_site_url")
    _require(not data.is_embedded, "the page was in a frame of another site")


def _check_authenticator_data(site: RelyingParty, data: AuthenticatorData) -> None:
    is_ours = hmac.compare_digest(data.rp_id_hash, site.id_hash)
    _require(is_ours, "it is for another host than the first of public_site_url")
    _require(data.is_user_present() and data.is_user_verified(), "nobody was verified")
    is_sound = data.is_backup_eligible() or not data.is_backed_up()
    _require(is_sound, "it is backed up and cannot be")


def _check_attestation(new: Attestation) -> None:
    """Check that the statement is valid for its format; whoever issued it is accepted."""
    digest = hashlib.sha256(new.client_data.raw).digest()
    try:
        FORMATS[new.format].verify(new.statement, new.authenticator_data, digest)
    # Besides its own errors, the library lets through whatever Python raises on malformed input.
    except Exception as error:
        raise _log_refusal(f"its attestation does not hold ({type(error).__name__})") from None


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise _log_refusal(otherwise)


def _log_refusal(why: str) -> PasskeyRefused:
    """Log the failed condition, for the operator only and without secrets; return the refusal."""
    log.info("a passkey was refused: %s", why)
    return PasskeyRefused()
