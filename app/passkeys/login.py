"""Use cases of signing in with a passkey.

Invariants: before a signature is verified, nothing about accounts is revealed, except what the
specification requires for the account of a known passkey. A signature works once: its flow is
consumed before it is examined, and its counter is stored in the transaction that opens the session.
"""

import hmac
from collections.abc import Mapping
from typing import Any

from sqlalchemy.orm import Session

from app.audit.models import Action, EntityType
from app.core.client import Client
from app.core.runtime import Runtime
from app.core.tokens import digest
from app.login.errors import CredentialsFailed
from app.login.mfa_login import FirstFactorKind
from app.login.service import FirstFactor, LoginOutcome, MfaRequired, complete_login
from app.passkeys import ceremony, credentials, flows, options, queries, relying_party
from app.passkeys.ceremony import StoredCredential
from app.passkeys.credentials import Assertion
from app.passkeys.errors import PasskeyLoginDisabled, PasskeyRefused
from app.passkeys.flows import Purpose, StartedCeremony
from app.passkeys.models import Passkey
from app.settings import keys
from app.users import identifiers
from app.users import service as users
from app.users.models import Account


def start(rt: Runtime, *, identifier: str | None, conditional: bool | None) -> StartedCeremony:
    """Begin a sign-in; the response is the same for every `identifier`, known or not.

    Only the account of that `identifier` may finish it; if it is None or blank, any account may.
    Raises: PasskeyLoginDisabled, PublicSiteUrlRequired, PublicSiteUrlInvalid.
    """
    _require_enabled(rt)
    site = relying_party.current(rt)
    challenge = flows.new_challenge()
    waiting = {"challenge": challenge, "identifier": _identifier_digest(identifier)}
    public_key = options.request(
        site,
        challenge=challenge,
        seconds=flows.life_seconds(rt),
        is_conditional=bool(conditional),
    )
    return StartedCeremony(flows.open_flow(rt, Purpose.LOGIN, waiting), public_key)


def finish(
    rt: Runtime, *, flow_id: str, credential: Mapping[str, Any], client: Client
) -> LoginOutcome | MfaRequired:
    """Sign in with an assertion; the flow is consumed even if that fails.

    Raises, in this order: PasskeyLoginDisabled, PublicSiteUrlRequired, PublicSiteUrlInvalid, which
    leave the flow open; FlowInvalid, CredentialMalformed; PasskeyRefused for an unknown passkey;
    AccountDisabled, PendingActivation; PasskeyRefused for a ceremony that fails verification.
    """
    _require_enabled(rt)
    site = relying_party.current(rt)
    flow = flows.take(rt, Purpose.LOGIN, flow_id)
    proof = credentials.assertion(credential)
    passkey, account = _get_passkey(rt, proof)
    _require_requested_account(account, flow["identifier"])
    # Documented so: before the signature is verified.
    users.require_sign_in_allowed(account)
    stored = StoredCredential(passkey.public_key, passkey.sign_count, passkey.backup_eligible)
    update = ceremony.verify_authentication(site, flow["challenge"], stored, proof)
    count, backed_up, now = update.sign_count, update.backed_up, rt.clock.now()

    def consume(session: Session) -> None:
        which = passkey.id, proof.credential_id
        if not queries.use(session, *which, count=count, backed_up=backed_up, now=now):
            raise PasskeyRefused

    factor = FirstFactor(
        kind=FirstFactorKind.PASSKEY,
        action=Action.USER_PASSKEY_LOGIN,
        entity_type=EntityType.PASSKEY,
        entity_id=passkey.id,
        entity_name=passkey.name,
        details={"passkey_id": passkey.id, "name": passkey.name},
        consume=consume,
    )
    try:
        return complete_login(rt, account, factor, client)
    except CredentialsFailed:
        raise PasskeyRefused from None


def _require_enabled(rt: Runtime) -> None:
    if not rt.settings.get(keys.PASSKEY_LOGIN_ENABLED):
        raise PasskeyLoginDisabled


def _get_passkey(rt: Runtime, proof: Assertion) -> tuple[Passkey, Account]:
    """Return the passkey of this credential and its account, if that has the asserted user handle.

    Raises: PasskeyRefused.
    """
    with rt.reading() as session:
        found = queries.find_by_credential_id(session, proof.credential_id)
    if found is None or not hmac.compare_digest(found.handle, proof.user_handle or ""):
        raise PasskeyRefused
    return found.passkey, found.account


def _identifier_digest(identifier: str | None) -> str:
    """Return what Redis stores of an identifier: a digest of fixed length, or "" if blank."""
    typed = (identifier or "").strip()
    return digest(identifiers.identifier(typed).key) if typed else ""


def _require_requested_account(account: Account, identifier_digest: str) -> None:
    """Refuse an account other than the one the sign-in was started for, if any."""
    names = (account.email, identifiers.username_key(account.username))
    if identifier_digest and identifier_digest not in map(digest, names):
        raise PasskeyRefused
