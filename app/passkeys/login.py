"""Use cases of signing in with a passkey.

Invariants: before a signature is verified, nothing about accounts is revealed, except that nobody
has a passkey, and what the specification requires for the account of a known one. A signature
works once: its flow is consumed before it is examined, and its counter is stored in the transaction
that opens the session.
"""

import hmac
from collections.abc import Mapping
from typing import Any

from fido2.webauthn import AuthenticationResponse, UserVerificationRequirement
from sqlalchemy.orm import Session

from app.audit.models import Action, EntityType
from app.core import base64url
from app.core.client import Client, SignInWish
from app.core.runtime import Runtime
from app.crypto.tokens import digest
from app.login.completion import (
    FirstFactor,
    FirstFactorKind,
    LoginOutcome,
    MfaRequired,
    complete_login,
)
from app.login.errors import CredentialsFailed
from app.passkeys import ceremony, queries, relying_party
from app.passkeys.errors import PasskeyLoginDisabled, PasskeyRefused, PasskeyUnknown
from app.passkeys.models import Passkey
from app.passkeys.relying_party import CeremonyPurpose, StartedCeremony
from app.settings import keys
from app.users import identifiers
from app.users import service as users
from app.users.models import Account


def start(rt: Runtime, *, identifier: str | None, conditional: bool | None) -> StartedCeremony:
    """Begin a sign-in; the response is the same for every `identifier`, known or not.

    Only the account of that `identifier` may finish it; if it is None or blank, any account may.
    Raises: errors.START_LOGIN.
    """
    _require_enabled(rt)
    site = relying_party.current(rt)
    options, state = site.authenticate_begin(
        [], UserVerificationRequirement.REQUIRED, extensions={"uvm": True}
    )
    waiting = {"challenge": state["challenge"], "identifier": _identifier_digest(identifier)}
    # Conditional UI: the browser offers passkeys as autofill suggestions.
    mediation = {"mediation": "conditional"} if conditional else {}
    return relying_party.begin(rt, CeremonyPurpose.LOGIN, waiting, {**options, **mediation})


def finish(
    rt: Runtime, *, flow_id: str, credential: Mapping[str, Any], client: Client, wish: SignInWish
) -> LoginOutcome | MfaRequired:
    """Sign in with an assertion; the flow is consumed even if that fails.

    Raises, in this order: PasskeyLoginDisabled, PublicSiteUrlRequired, PublicSiteUrlInvalid, which
    leave the flow open; FlowInvalid, CredentialMalformed; PasskeyUnknown; PasskeyRefused for the
    passkey of another account than was named; AccountDisabled, PendingActivation; PasskeyRefused
    for a ceremony that fails verification.
    """
    _require_enabled(rt)
    site = relying_party.current(rt)
    flow = relying_party.take(rt, CeremonyPurpose.LOGIN, flow_id)
    proof = ceremony.read(AuthenticationResponse, credential)
    passkey, account = _get_passkey(rt, proof)
    _require_requested_account(account, flow["identifier"])
    # Documented so: before the signature is verified.
    users.require_sign_in_allowed(account)
    seen = ceremony.verify_authentication(site, flow["challenge"], passkey, proof)
    now = rt.clock.now()

    def consume(session: Session) -> None:
        if not queries.use(session, passkey, seen.counter, seen.is_backed_up(), now):
            raise PasskeyRefused

    factor = FirstFactor(
        kind=FirstFactorKind.PASSKEY,
        action=Action.USER_PASSKEY_LOGIN,
        entity_type=EntityType.PASSKEY,
        entity_id=passkey.id,
        entity_name=passkey.name,
        details={"passkey_id": passkey.id, "name": passkey.name},
        consume=consume,
        flow=digest(flow_id.strip()),
    )
    try:
        return complete_login(rt, account, factor, client, wish)
    except CredentialsFailed:
        raise PasskeyRefused from None


def _require_enabled(rt: Runtime) -> None:
    if not rt.settings.get(keys.PASSKEY_LOGIN_ENABLED):
        raise PasskeyLoginDisabled


def _get_passkey(rt: Runtime, proof: AuthenticationResponse) -> tuple[Passkey, Account]:
    """Return the passkey of this credential and its account, if that has the asserted handle."""
    with rt.reading() as session:
        found = queries.find_with_account(session, proof.id)
    presented = base64url.encoded(proof.response.user_handle or b"")
    if found is None:
        raise PasskeyUnknown
    passkey, handle, account = found
    if not hmac.compare_digest(handle, presented):
        raise PasskeyRefused
    return passkey, account


def _identifier_digest(identifier: str | None) -> str:
    """Return what Redis stores of an identifier: a digest of fixed length, or "" if blank."""
    typed = (identifier or "").strip()
    return digest(identifiers.identifier(typed)) if typed else ""


def _require_requested_account(account: Account, identifier_digest: str) -> None:
    """Refuse an account other than the one the sign-in was started for, if any."""
    names = (account.email, identifiers.username_key(account.username))
    if identifier_digest and identifier_digest not in map(digest, names):
        raise PasskeyRefused
